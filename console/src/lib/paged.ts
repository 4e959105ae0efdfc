import { useEffect, useState } from "preact/hooks";
import { get, type Problem, type Query } from "../api/client.js";
import type { Page } from "../api/types.js";
import { useRequest } from "./request.js";

export interface Paged<D, R> {
  rows: R[];
  first: D | null;
  problem: Problem | null;
  loading: boolean;
  /** Asks for the next page; null if there is none. */
  more: (() => void) | null;
  again: () => void;
  at: number;
}

/** A list and the pages that a person has asked for after the first one. */
export function usePaged<D extends Page, R>(path: string, query: Query, rowsOf: (page: D) => R[], everyMs = 0): Paged<D, R> {
  const [later, setLater] = useState<D[]>([]);
  // A newer first page would not lead on to the later ones.
  const request = useRequest<D>(path, query, later.length > 0 ? 0 : everyMs);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const what = path + JSON.stringify(query);
  useEffect(() => {
    setLater([]);
    setProblem(null);
  }, [what]);
  const last = later[later.length - 1] ?? request.value;
  const next = last?.next;
  const more =
    typeof next === "string" && !busy
      ? () => {
          setBusy(true);
          void get<D>(path, { ...query, cursor: next }).then((answer) => {
            setBusy(false);
            if (answer.ok) setLater((before) => [...before, answer.value]);
            else setProblem(answer.problem);
          });
        }
      : null;
  const pages = request.value ? [request.value, ...later] : [];
  return {
    rows: pages.flatMap(rowsOf),
    first: request.value,
    problem: request.problem ?? problem,
    loading: request.loading || busy,
    more,
    again: () => {
      setLater([]);
      request.again();
    },
    at: request.at,
  };
}
