// Who looks, and what they may do.
import { get, onUnauthorized, post, type Problem } from "./client.js";
import type { Role, Session } from "./types.js";
import { start, stop } from "./live.js";
import { Observable } from "../lib/observable.js";

export type SessionState =
  | { kind: "asking" }
  | { kind: "open"; session: Session }
  | { kind: "login" }
  | { kind: "failed"; problem: Problem };

export const session = new Observable<SessionState>({ kind: "asking" });

function open(value: Session): void {
  session.set({ kind: "open", session: value });
  start();
}

export async function askSession(): Promise<void> {
  const answer = await get<Session>("/session");
  if (answer.ok) open(answer.value);
  else if (answer.problem.status === 401) session.set({ kind: "login" });
  else session.set({ kind: "failed", problem: answer.problem });
}

/** Exchanges the token for a cookie that scripts cannot read; the page keeps neither. */
export async function login(token: string): Promise<Problem | null> {
  const answer = await post<Session>("/login", { token });
  if (!answer.ok) return answer.problem;
  open(answer.value);
  return null;
}

export async function logout(): Promise<void> {
  stop();
  await post("/logout", {});
  session.set({ kind: "login" });
}

onUnauthorized(() => {
  if (session.value.kind !== "open") return;
  stop();
  session.set({ kind: "login" });
});

const RANK: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

/** Why the person may not do what needs this role; null if they may. */
export function refusal(state: SessionState, needed: Role): string | null {
  if (state.kind !== "open") return "Nobody is logged in.";
  if (RANK[state.session.role] >= RANK[needed]) return null;
  const who = needed === "admin" ? "an admin" : "an operator or an admin";
  return `Your role is ${state.session.role}: only ${who} may do this.`;
}

export const mayReadPayloads = (state: SessionState): boolean =>
  state.kind === "open" && state.session.payloads !== false;
