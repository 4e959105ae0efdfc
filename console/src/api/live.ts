// The document of /status, once a second, for everything on the page.
import type { Status } from "./types.js";
import { get, LIVE, type Problem } from "./client.js";
import { Observable } from "../lib/observable.js";

export interface Live {
  /** The newest document; null until the first one. */
  status: Status | null;
  /** When it came, by this machine's clock. */
  at: number;
  /** Why there is no newer one; null while all is well. */
  problem: Problem | null;
  /** Since when there is none. */
  awaySince: number | null;
}

export const live = new Observable<Live>({ status: null, at: 0, problem: null, awaySince: null });

/** Deliveries per second of each subscription over the last seconds that were seen. */
export const rates = new Observable<ReadonlyMap<string, number>>(new Map());

const WINDOW_MS = 10_000;
/** The console answers within a second or says that it cannot; a connection that hangs says nothing. */
const SILENCE_MS = 10_000;

const SILENT: Problem = {
  title: "the console does not answer",
  hint: "look whether `outbox console` runs and its database answers; relays are processes of their own and go on",
  status: 0,
};

interface Sample {
  at: number;
  delivered: Map<string, number>;
}

let samples: Sample[] = [];
let source: EventSource | null = null;
let again: ReturnType<typeof setTimeout> | undefined;
let heard = 0;

function measure(status: Status): void {
  const at = Date.parse(status.at);
  samples = samples.filter((sample) => at - sample.at <= WINDOW_MS && sample.at < at);
  samples.push({ at, delivered: new Map(status.subscriptions.map((one) => [one.name, one.delivered])) });
  const first = samples[0];
  if (!first || first.at === at) return;
  const seconds = (at - first.at) / 1000;
  const measured = new Map<string, number>();
  for (const one of status.subscriptions) {
    const before = first.delivered.get(one.name);
    if (before !== undefined) measured.set(one.name, Math.max(0, one.delivered - before) / seconds);
  }
  rates.set(measured);
}

function away(problem: Problem): void {
  const before = live.value;
  live.set({ ...before, problem, awaySince: before.awaySince ?? Date.now() });
}

function retryLater(): void {
  source?.close();
  source = null;
  clearTimeout(again);
  again = setTimeout(start, 1000);
}

export function start(): void {
  clearTimeout(again);
  if (source || document.hidden) return;
  heard = Date.now();
  const opened = new EventSource(LIVE);
  source = opened;
  opened.addEventListener("open", () => (heard = Date.now()));
  opened.addEventListener("status", (event) => {
    heard = Date.now();
    const status = JSON.parse((event as MessageEvent<string>).data) as Status;
    measure(status);
    live.set({ status, at: Date.now(), problem: null, awaySince: null });
  });
  opened.addEventListener("problem", (event) => {
    heard = Date.now();
    away(JSON.parse((event as MessageEvent<string>).data) as Problem);
  });
  opened.addEventListener("error", () => {
    // After each document the browser asks again by itself. It gives up only if the answer was an
    // error, or if nobody answers.
    if (opened.readyState !== EventSource.CLOSED) return;
    source = null;
    // An EventSource does not say why. Another question tells whether the session is over, of which
    // client.ts informs the page, or what else is the matter.
    void get("/session").then((answer) => {
      if (!answer.ok && answer.problem.status === 401) return;
      away(answer.ok ? SILENT : answer.problem);
      retryLater();
    });
  });
}

export function stop(): void {
  clearTimeout(again);
  source?.close();
  source = null;
}

/** Nobody looks at a hidden tab, so it asks nothing. */
export function followVisibility(): void {
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  setInterval(() => {
    if (!source || Date.now() - heard < SILENCE_MS) return;
    away(SILENT);
    retryLater();
  }, 1000);
}
