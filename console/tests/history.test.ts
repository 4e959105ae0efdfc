import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryLine, Point } from "../src/api/types.js";
import { linePath, series } from "../src/lib/history.js";

const NOW = Date.parse("2026-01-05T09:00:30Z");

const point = (at: string, delivered: number): Point => ({ at, delivered, failed: 0, parked: 0, dead: 0, pending: 3, oldest_seconds: 0, p50_seconds: 0.1, p99_seconds: 0.2 });

test("a step in which nothing happened is zero, and not left out", () => {
  const line = { points: [point("2026-01-05T08:30:00Z", 120), point("2026-01-05T09:00:00Z", 60)] } as HistoryLine;
  const made = series(line, { seconds: 3600, step_seconds: 60 }, NOW);
  assert.equal(made.at.length, 61);
  assert.equal(made.at[60], Date.parse("2026-01-05T09:00:00Z") / 1000);
  assert.equal(made.rate[60], 1);
  assert.equal(made.rate[30], 2);
  assert.equal(made.rate[31], 0);
  assert.equal(made.p50[31], null);
});

test("a subscription without a past has an empty line", () => {
  const made = series(undefined, { seconds: 600, step_seconds: 60 }, NOW);
  assert.ok(made.rate.every((value) => value === 0));
  assert.equal(linePath([0, 0, 0], 100, 10), "M0.0 10.0L50.0 10.0L100.0 10.0");
  assert.equal(linePath([0, 5, 10], 100, 10), "M0.0 10.0L50.0 5.0L100.0 0.0");
});
