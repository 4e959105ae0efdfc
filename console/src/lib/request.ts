import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type Problem, type Query } from "../api/client.js";

export interface Request<T> {
  /** The newest answer, also while a newer one is asked for or could not be had. */
  value: T | null;
  problem: Problem | null;
  loading: boolean;
  /** When the answer came. */
  at: number;
  again: () => void;
}

/**
 * Asks for a document when `path` or `query` changes, and every `everyMs` while the page is looked
 * at. A null path asks for nothing.
 */
export function useRequest<T>(path: string | null, query: Query = {}, everyMs = 0): Request<T> {
  const [state, set] = useState<Omit<Request<T>, "again"> & { what: string }>({ value: null, problem: null, loading: path !== null, at: 0, what: "" });
  const [turn, setTurn] = useState(0);
  const what = path === null ? "" : path + "?" + JSON.stringify(query);
  const asked = useRef(query);
  asked.current = query;
  useEffect(() => {
    if (path === null) return;
    const controller = new AbortController();
    set((before) => ({ ...before, loading: true, ...(before.what === what ? {} : { value: null, problem: null, what }) }));
    get<T>(path, asked.current, controller.signal).then(
      (answer) => {
        if (controller.signal.aborted) return;
        set((before) =>
          answer.ok
            ? { value: answer.value, problem: null, loading: false, at: Date.now(), what }
            : { ...before, problem: answer.problem, loading: false },
        );
      },
      () => {
        // Only an abort rejects, and then nobody waits for the answer any more.
      },
    );
    return () => controller.abort();
  }, [what, turn]);
  const again = useCallback(() => setTurn((before) => before + 1), []);
  useEffect(() => {
    if (everyMs === 0 || path === null) return;
    const timer = setInterval(() => {
      if (!document.hidden) again();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, what]);
  const fresh = state.what === what;
  return { value: fresh ? state.value : null, problem: fresh ? state.problem : null, loading: fresh ? state.loading : path !== null, at: state.at, again };
}
