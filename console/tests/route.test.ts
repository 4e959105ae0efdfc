import assert from "node:assert/strict";
import { test } from "node:test";
import { href, parseRoute } from "../src/lib/route.js";

test("an address says which view and with which filters", () => {
  assert.deepEqual(parseRoute(""), { path: [], query: {} });
  assert.deepEqual(parseRoute("#/events?key=order%2F42&type="), { path: ["events"], query: { key: "order/42" } });
  assert.deepEqual(parseRoute("#/subscriptions/a%2Fb"), { path: ["subscriptions", "a/b"], query: {} });
  assert.deepEqual(parseRoute("#/events/%E0%A4%A"), { path: ["events", "%E0%A4%A"], query: {} }, "a broken address is shown, not thrown");
});

test("what is made is what is read", () => {
  for (const name of ["orders", "a/b", "ü %?#&", "a+b c"]) {
    const made = href(["subscriptions", name], { error: `${name} = 1`, none: "", nothing: undefined });
    assert.deepEqual(parseRoute(made), { path: ["subscriptions", name], query: { error: `${name} = 1` } });
  }
});
