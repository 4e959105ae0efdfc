// The last hour of all subscriptions, for the lines on the cards.
import { get } from "../api/client.js";
import type { Status } from "../api/types.js";
import { series } from "./history.js";
import { Observable } from "./observable.js";

export interface Recent {
  rate: number[];
  delivered: number;
  failed: number;
  p50: number | null;
  p99: number | null;
}

export const recent = new Observable<ReadonlyMap<string, Recent>>(new Map());

const EVERY_MS = 60_000;
/** Lines that are worked on in one frame. */
const SLICE = 25;

let asked = 0;

const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** Asks for the last hour if what is known is more than a minute old. */
export async function refreshRecent(): Promise<void> {
  if (Date.now() - asked < EVERY_MS) return;
  asked = Date.now();
  const answer = await get<Status>("/status", { since: "1h" });
  if (!answer.ok || !answer.value.history) {
    asked = 0;
    return;
  }
  const { history } = answer.value;
  const made = new Map<string, Recent>();
  for (const [at, line] of history.lines.entries()) {
    if (line.type !== null) continue;
    made.set(line.subscription, {
      rate: series(line, history, Date.now()).rate,
      delivered: line.delivered,
      failed: line.failed,
      p50: line.p50_seconds,
      p99: line.p99_seconds,
    });
    if (at % SLICE === SLICE - 1) await nextFrame();
  }
  recent.set(made);
}
