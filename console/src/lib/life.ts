// What became of an event in a subscription, step by step. Pure.
import type { Change, Life, OutboxEvent, ParkedEvent } from "../api/types.js";
import { count } from "./format.js";

export interface Step {
  /** Null if the store does not know when. */
  at: string | null;
  name: string;
  tone: "good" | "bad" | "warn" | "calm" | "busy";
  text: string;
  /** An event that it has to do with. */
  other?: string;
}

/** Whether a change that a person made was about this event, by its id or seq. */
export function concerns(change: Change, event: Pick<OutboxEvent, "id" | "seq">): boolean {
  const named = (value: unknown): boolean =>
    value === event.id || value === event.seq || value === String(event.seq) || (Array.isArray(value) && value.some(named));
  return Object.values(change.filter).some(named);
}

const times = (value: number): string => (value === 1 ? "once" : value === 2 ? "twice" : count("time", value));

const VERBS: Record<string, string> = {
  "parked retry": "retried",
  "parked discard": "discarded",
  "parked edit": "corrected",
  "tasks retry": "retried",
  "tasks cancel": "cancelled",
};

/** The steps in the order in which they happened, as far as the store remembers them. */
export function lifeSteps(event: OutboxEvent, life: Life, parked: ParkedEvent | undefined, changes: readonly Change[]): Step[] {
  const steps: Step[] = [{ at: event.created_at, name: "written", tone: "calm", text: "committed with the data that it is about" }];
  const attempts = life.attempts ?? 0;
  if (parked) {
    steps.push({ at: parked.parked_at, name: "parked", tone: "warn", text: "set aside, so that other keys go on" });
  }
  for (const change of changes) {
    if (change.subscription !== life.subscription || !concerns(change, event)) continue;
    const name = VERBS[change.verb];
    if (name) steps.push({ at: change.at, name, tone: "busy", text: `by ${change.person}${change.reason ? `: ${change.reason}` : ""}` });
  }
  steps.sort((a, b) => (a.at ?? "").localeCompare(b.at ?? ""));
  const failed = attempts > 0 || life.error !== null;
  if (failed && life.state !== "published") {
    steps.push({
      at: null,
      name: attempts > 0 ? `sent ${times(attempts)}, and failed` : "failed",
      tone: "bad",
      text: life.error ?? "no error is recorded",
    });
  }
  switch (life.state) {
    case "published":
      if (attempts > 1) steps.push({ at: null, name: `sent ${times(attempts)}`, tone: "warn", text: "before it was accepted" });
      steps.push({ at: life.published_by, name: "delivered", tone: "good", text: "its destination accepted it at this time or earlier" });
      break;
    case "pending":
      steps.push({ at: null, name: "pending", tone: "calm", text: "waits to be read, or is being sent" });
      break;
    case "filtered":
      steps.push({ at: null, name: "filtered", tone: "calm", text: "read, and not wanted by the filter of this subscription" });
      break;
    case "skipped":
      steps.push({ at: null, name: "skipped", tone: "calm", text: "was there before this subscription, which began after it" });
      break;
    case "retrying":
      steps.push({ at: life.next_attempt_at, name: "is sent again", tone: "warn", text: "at this time" });
      break;
    case "waiting":
      steps.push({
        at: null,
        name: "waiting",
        tone: "warn",
        text: "behind an earlier event of its key" + (life.waiting_for_seq === null ? "" : `, seq ${life.waiting_for_seq}`),
        ...(life.waiting_for ? { other: life.waiting_for } : {}),
      });
      break;
    case "dead":
      steps.push({ at: null, name: "dead", tone: "bad", text: "is not sent again until a person retries, corrects or discards it" });
      break;
    case "running":
    case "ready":
      steps.push({ at: null, name: life.state, tone: "busy", text: life.state === "running" ? "a worker runs it" : "any worker may take it" });
      break;
    case "discarded":
      steps.push({ at: null, name: "discarded", tone: "calm", text: `by ${life.ended_by ?? "somebody"}${life.reason ? `: ${life.reason}` : ""}` });
      break;
    case "edited":
      steps.push({
        at: null,
        name: "corrected",
        tone: "calm",
        text: `by ${life.ended_by ?? "somebody"}${life.reason ? `: ${life.reason}` : ""}; a copy took its place`,
        ...(life.replaced_by ? { other: life.replaced_by } : {}),
      });
      break;
  }
  // The state as it is now says more than the change that led to it.
  const last = steps[steps.length - 1];
  return steps.filter((step) => step === last || !(last && step.name === last.name));
}

const CORRELATION = /^(x-)?correlation[-_]?id$|^traceparent$/i;

/** What began all this: the header whose value is the same in every message that follows from one request. */
export function correlationOf(headers: Record<string, string> | null | undefined): { name: string; value: string } | null {
  for (const [name, value] of Object.entries(headers ?? {})) if (CORRELATION.test(name)) return { name, value };
  return null;
}
