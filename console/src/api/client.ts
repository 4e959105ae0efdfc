// Requests to the API. A failure is always a Problem, with words that can be shown to a person.

const API = "api/v1";

export interface Problem {
  title: string;
  hint: string;
  /** 0 if the console did not answer at all. */
  status: number;
}

export type Answer<T> = { ok: true; value: T } | { ok: false; problem: Problem };

export type Query = Record<string, string | number | undefined>;

type Members = Record<string, unknown>;

const listeners = new Set<() => void>();

/** Calls `listener` when the console says that it does not know who asks. */
export function onUnauthorized(listener: () => void): void {
  listeners.add(listener);
}

function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

async function problemOf(response: Response): Promise<Problem> {
  const fallback: Problem = {
    title: `the console answered with status ${response.status}`,
    hint: "look into the console's log",
    status: response.status,
  };
  try {
    const body = (await response.json()) as Partial<Problem>;
    return { title: body.title ?? fallback.title, hint: body.hint ?? fallback.hint, status: response.status };
  } catch {
    return fallback;
  }
}

async function ask<T>(path: string, init: RequestInit): Promise<Answer<T>> {
  let response: Response;
  try {
    response = await fetch(API + path, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    return {
      ok: false,
      problem: {
        title: "the console does not answer",
        hint: "look whether `outbox console` runs and the network is up; deliveries do not depend on it",
        status: 0,
      },
    };
  }
  if (!response.ok) {
    if (response.status === 401) listeners.forEach((listener) => listener());
    return { ok: false, problem: await problemOf(response) };
  }
  return { ok: true, value: (await response.json()) as T };
}

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<Answer<T>> {
  return ask<T>(withQuery(path, query), signal ? { signal } : {});
}

/** The headers are those that no form and no page of another site can send. */
export function post<T = { output: string }>(path: string, members: Members): Promise<Answer<T>> {
  return ask<T>(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Outbox-Console": "1" },
    body: JSON.stringify(members),
  });
}

/** A name as a segment of a path; a slash within it is encoded. */
export const segment = (name: string | number): string => encodeURIComponent(String(name));

export const LIVE = `${API}/live`;
