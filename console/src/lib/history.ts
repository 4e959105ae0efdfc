// What relays and workers did, as series that can be drawn. Pure.
import type { History, HistoryLine } from "../api/types.js";

export interface Series {
  /** Seconds since 1970, one for each step. */
  at: number[];
  rate: number[];
  failed: number[];
  pending: number[];
  p50: (number | null)[];
  p99: (number | null)[];
}

/**
 * All steps of the time that was asked for. The document leaves out steps in which nothing happened,
 * and a line through its points alone would hide that.
 */
export function series(line: HistoryLine | undefined, history: Pick<History, "seconds" | "step_seconds">, now: number): Series {
  const step = Math.max(1, history.step_seconds);
  const steps = Math.max(2, Math.ceil(history.seconds / step) + 1);
  const last = Math.floor(now / 1000 / step) * step;
  const first = last - (steps - 1) * step;
  const made: Series = {
    at: Array.from({ length: steps }, (_, i) => first + i * step),
    rate: new Array<number>(steps).fill(0),
    failed: new Array<number>(steps).fill(0),
    pending: new Array<number>(steps).fill(0),
    p50: new Array<number | null>(steps).fill(null),
    p99: new Array<number | null>(steps).fill(null),
  };
  for (const point of line?.points ?? []) {
    const at = Math.round((Date.parse(point.at) / 1000 - first) / step);
    if (at < 0 || at >= steps) continue;
    made.rate[at] = (made.rate[at] ?? 0) + point.delivered / step;
    made.failed[at] = (made.failed[at] ?? 0) + point.failed / step;
    made.pending[at] = Math.max(made.pending[at] ?? 0, point.pending);
    made.p50[at] = point.p50_seconds;
    made.p99[at] = point.p99_seconds;
  }
  return made;
}

/** The line of all that a subscription delivered. */
export function lineOf(history: History | null | undefined, subscription: string): HistoryLine | undefined {
  return history?.lines.find((line) => line.subscription === subscription && line.type === null);
}

/** The commands of an SVG path through the values, in a box of the given size. */
export function linePath(values: readonly number[], width: number, height: number): string {
  const top = Math.max(...values, 0);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  return values
    .map((value, i) => `${i === 0 ? "M" : "L"}${(i * step).toFixed(1)} ${(top === 0 ? height : height - (value / top) * height).toFixed(1)}`)
    .join("");
}
