import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change, Life, OutboxEvent } from "../src/api/types.js";
import { concerns, correlationOf, lifeSteps } from "../src/lib/life.js";

const event: OutboxEvent = {
  seq: 7,
  id: "01a2",
  aggregate_type: "order",
  aggregate_id: "42",
  event_type: "OrderPaid",
  content_type: null,
  created_at: "2026-01-05T08:00:00Z",
  occurred_at: null,
  in_log: true,
  content_kept: true,
  subscriptions: [],
};
const life: Life = {
  subscription: "orders",
  state: "published",
  published_by: "2026-01-05T08:00:01Z",
  attempts: null,
  next_attempt_at: null,
  error: null,
  waiting_for: null,
  waiting_for_seq: null,
  ended_by: null,
  reason: null,
  replaced_by: null,
};
const change = (filter: Record<string, unknown>, changes: Partial<Change> = {}): Change => ({
  id: 1,
  at: "2026-01-05T08:30:00Z",
  person: "anna",
  origin: "console",
  verb: "parked retry",
  subscription: "orders",
  queue: null,
  filter,
  count: 1,
  reason: null,
  ...changes,
});

test("an event that was delivered at once was written and delivered", () => {
  assert.deepEqual(lifeSteps(event, life, undefined, []).map((step) => step.name), ["written", "delivered"]);
});

test("a dead one says how often it failed, why, and who tried it again", () => {
  const parked = { subscription: "orders", seq: 7, id: "01a2", state: "dead" as const, attempts: 3, error: "too large", aggregate_type: "order", aggregate_id: "42", event_type: "OrderPaid", parked_at: "2026-01-05T08:00:02Z", next_attempt_at: null };
  const steps = lifeSteps(event, { ...life, state: "dead", attempts: 3, error: "too large" }, parked, [change({ events: ["7"] }), change({ events: ["8"] })]);
  assert.deepEqual(steps.map((step) => step.name), ["written", "parked", "retried", "sent 3 times, and failed", "dead"]);
  assert.equal(steps[2]?.text, "by anna");
  assert.equal(steps[3]?.text, "too large");
});

test("a discarded one says who gave it up, once", () => {
  const steps = lifeSteps(event, { ...life, state: "discarded", ended_by: "anna", reason: "a test" }, undefined, [change({ events: ["01a2"] }, { verb: "parked discard" })]);
  assert.deepEqual(steps.map((step) => step.name), ["written", "discarded"]);
});

test("a change concerns the events that it names", () => {
  assert.ok(concerns(change({ events: ["7", "9"] }), event));
  assert.ok(concerns(change({ event: "01a2" }), event));
  assert.ok(!concerns(change({ subscription: "orders", error: "7 things" }), event));
});

test("the correlation id has one of a few names", () => {
  assert.deepEqual(correlationOf({ tenant: "7", "X-Correlation-Id": "c" }), { name: "X-Correlation-Id", value: "c" });
  assert.equal(correlationOf({ tenant: "7" }), null);
});
