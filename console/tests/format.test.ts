import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, count, duration, keyOf, moment, rate, readable, shortMoment } from "../src/lib/format.js";

test("lengths of time have at most two units", () => {
  const cases: [number, string][] = [
    [0, "0 s"],
    [0.0004, "<1 ms"],
    [0.012, "12 ms"],
    [1.25, "1.3 s"],
    [59.9, "59 s"],
    [61, "1 min 1 s"],
    [3599, "59 min"],
    [3600, "1 h"],
    [7500, "2 h 5 min"],
    [48 * 3600, "2 d"],
    [50 * 3600, "2 d 2 h"],
  ];
  for (const [seconds, text] of cases) assert.equal(duration(seconds), text, String(seconds));
});

test("counts are in English", () => {
  assert.equal(count("event", 1), "1 event");
  assert.equal(count("event", 1204), "1,204 events");
  assert.equal(rate(0), "0/s");
  assert.equal(rate(0.042), "0.042/s");
  assert.equal(rate(1204.4), "1,204/s");
  assert.equal(bytes(512), "512 B");
  assert.equal(bytes(1.5 * 1024 ** 3), "1.5 GiB");
});

test("times are in the zone that was chosen", () => {
  const at = new Date("2026-01-05T08:09:12.744Z");
  assert.equal(moment(at, "utc"), "5 Jan 2026, 08:09:12");
  assert.equal(shortMoment(at, "utc", new Date("2026-01-05T23:00:00Z")), "08:09:12");
  assert.match(shortMoment(at, "utc", new Date("2026-01-06T23:00:00Z")), /05 Jan/);
  assert.equal(ago(at, new Date("2026-01-05T08:12:12.744Z")), "3 min ago");
  assert.equal(ago(at, new Date("2026-01-05T08:08:12.744Z")), "in 1 min");
});

test("a payload is shown as it is, but for line breaks of JSON", () => {
  assert.equal(readable('{"a":1}', "application/json"), '{\n  "a": 1\n}');
  assert.equal(readable('{"a":1}', "text/plain"), '{"a":1}');
  assert.equal(readable("{broken", "application/json"), "{broken");
  // A number that JavaScript cannot hold would become another one.
  assert.equal(readable('{"id":12345678901234567890}', null), '{"id":12345678901234567890}');
});

test("an event without an aggregate id has no key", () => {
  assert.equal(keyOf({ aggregate_type: "order", aggregate_id: "42" }), "order/42");
  assert.equal(keyOf({ aggregate_type: "order", aggregate_id: "" }), null);
});
