import assert from "node:assert/strict";
import { test } from "node:test";
import type { DoctorFinding, Relay, Status, SubscriptionStatus } from "../src/api/types.js";
import { findings, isCommand, queueOf, shellWord, withoutHint, type Seen } from "../src/lib/findings.js";

const NOW = Date.parse("2026-01-05T09:00:00Z");

const subscription = (changes: Partial<SubscriptionStatus> = {}): SubscriptionStatus => ({
  name: "orders",
  state: "active",
  reason: null,
  trouble: null,
  trouble_since: null,
  sink: "http",
  stopped_event: null,
  pending: 0,
  pending_is_more: false,
  delivered: 0,
  filtered: 0,
  parked: { retrying: 0, waiting: 0, dead: 0 },
  held_back: { parts: 0, bytes: 0 },
  generation: 1,
  config_version: 1,
  last_settled_at: null,
  oldest_pending_at: null,
  lag_seconds: null,
  matches_nothing: false,
  replay: null,
  verified: null,
  ...changes,
});

const relay: Relay = { id: "1", name: "app-1:7", owner: true, alive: true, lanes: "default 64", generation: 1, heartbeat_at: "2026-01-05T08:59:58Z" };

const status = (changes: Partial<Status> = {}): Status => ({
  store: "sqlite:shop.db",
  at: "2026-01-05T09:00:00Z",
  subscriptions: [subscription()],
  relays: [relay],
  queues: [],
  workers: [],
  adoptions: [],
  history: null,
  problems: [],
  ...changes,
});

const found = (changes: Partial<Seen>) => findings({ status: status(), doctor: null, running: [], schedules: [], now: NOW, ...changes });

test("nothing is wrong while all goes well", () => {
  assert.deepEqual(found({}), []);
});

test("a destination that is down is named with what its relay says to do", () => {
  const [one, ...others] = found({
    status: status({ subscriptions: [subscription({ trouble: "http: cannot connect (hint: check http.url)", pending: 5, lag_seconds: 900 })] }),
    doctor: [
      { check: "sink", subject: "orders", severity: "error", what: "cannot connect", reason: "stays pending", command: "check http.url" },
      { check: "subscriptions", subject: "orders", severity: "warning", what: "makes no progress since then: http", reason: "", command: null },
    ],
  });
  assert.deepEqual(others, [], "one outage is one finding");
  assert.equal(one?.key, "subscriptions:orders");
  assert.equal(one?.advice, "Check http.url.");
  assert.equal(one?.command, "outbox sinks orders");
});

test("what is worst comes first", () => {
  const all = found({
    status: status({
      subscriptions: [
        subscription({ name: "a", state: "paused", reason: "noon" }),
        subscription({ name: "b", parked: { retrying: 0, waiting: 1, dead: 2 } }),
        subscription({ name: "c", state: "stopped", reason: "rejected", stopped_event: { id: "x", seq: 3 } }),
      ],
    }),
  });
  assert.deepEqual(all.map((one) => [one.severity, one.subject]), [
    ["error", "c"],
    ["warning", "b"],
    ["note", "a"],
  ]);
  assert.deepEqual(all[0]?.remedy, { kind: "resume-subscription", name: "c" });
  assert.equal(all[1]?.links[0]?.to, "#/parked?subscription=b&state=dead");
});

test("no relay is one finding, whatever else the store says about it", () => {
  const all = found({
    status: status({
      relays: [{ ...relay, alive: false }],
      problems: ["relays: no relay is alive; nothing is delivered (hint: outbox relay)", "pending orders: 5 events are pending; they are late"],
    }),
  });
  assert.deepEqual(all.map((one) => one.key), ["relays:"]);
  assert.equal(all[0]?.when?.at, "2026-01-05T08:59:58Z");
});

test("what only the store can tell is told in its words", () => {
  const [one] = found({ status: status({ problems: ["verify orders: the ledger differs from the log in 1 place; events may be lost (hint: outbox verify --subscription orders)"] }) });
  assert.deepEqual([one?.severity, one?.subject, one?.what, one?.command], ["error", "orders", "the ledger differs from the log in 1 place", "outbox verify --subscription orders"]);
  assert.equal(one?.links[0]?.to, "#/verify?subscription=orders");
});

test("a run that takes long, or whose worker is gone, is stuck", () => {
  const task = { id: "t", queue: "reports", type: "report.make", key: null, state: "running" as const, enqueued_at: "2026-01-05T08:00:00Z", worker: "app-1:7" };
  const workers = [{ name: "app-1:7", alive: true, queues: {}, running: 1, seen_seconds: 3 }];
  assert.equal(found({ status: status({ workers }), running: [{ ...task, running_since: "2026-01-05T08:50:00Z" }] }).length, 0);
  assert.match(found({ status: status({ workers }), running: [{ ...task, running_since: "2026-01-05T08:10:00Z" }] })[0]?.what ?? "", /has run for 50 min on app-1:7/);
  const gone = [{ ...workers[0]!, alive: false }];
  assert.match(found({ status: status({ workers: gone }), running: [{ ...task, running_since: "2026-01-05T08:59:00Z" }] })[0]?.what ?? "", /not alive/);
});

test("a schedule whose tick is over has missed it, unless it is paused", () => {
  const one = { name: "nightly", queue: "reports", type: "r", key: null, cron: "0 3 * * *", every: null, time_zone: "UTC", missed: "one", paused: false, next_at: "2026-01-05T03:00:00Z", last_at: null, last_task: null };
  assert.equal(found({ schedules: [one] })[0]?.when?.at, "2026-01-05T03:00:00Z");
  assert.equal(found({ schedules: [{ ...one, paused: true }] }).length, 0);
  assert.equal(found({ schedules: [{ ...one, next_at: "2026-01-05T08:59:30Z" }] }).length, 0, "a minute is no delay");
});

test("history that a paused subscription holds can be released there", () => {
  const all = found({ status: status({ subscriptions: [subscription({ state: "paused", reason: "x", held_back: { parts: 3, bytes: 5 * 1024 ** 3 } })] }) });
  const one = all.find((each) => each.key === "history:orders");
  assert.match(one?.what ?? "", /5 GiB/);
  assert.deepEqual(one?.remedy, { kind: "resume-subscription", name: "orders" });
});

test("the doctor adds what the live document does not have", () => {
  const doctor: DoctorFinding[] = [
    { check: "disk", subject: null, severity: "error", what: "the disk is full", reason: "none is lost", command: "df -h" },
    { check: "parked", subject: "orders", severity: "warning", what: "3 dead events", reason: "", command: null },
    { check: "store", subject: null, severity: "ok", what: "answers", reason: null, command: null },
  ];
  const all = found({ doctor });
  assert.deepEqual(all.map((one) => one.key), ["disk:"], "what was mended since the doctor looked is not shown");
});

test("a command says which store it is for, if the doctor does", () => {
  const command = "outbox parked list --subscription orders --state dead";
  const seen = { status: status({ subscriptions: [subscription({ parked: { retrying: 0, waiting: 0, dead: 1 } })] }) };
  const doctor: DoctorFinding[] = [{ check: "parked", subject: "orders", severity: "warning", what: "1 dead event", reason: "", command: command + " --store sqlite:shop.db" }];
  assert.equal(found(seen)[0]?.command, command);
  assert.equal(found({ ...seen, doctor })[0]?.command, command + " --store sqlite:shop.db");
});

test("what is wrong with a consumer leads to its messages", () => {
  const doctor: DoctorFinding[] = [{ check: "consumer", subject: "billing", severity: "error", what: "topic orders does not exist", reason: "", command: "create it" }];
  assert.deepEqual(found({ doctor })[0]?.links, [{ text: "Messages of billing", to: "#/inbox?consumer=billing" }]);
});

test("words and commands are told apart", () => {
  assert.ok(isCommand("outbox relay"));
  assert.ok(isCommand("ALTER TABLE outbox.event ALTER COLUMN xid SET DEFAULT 1;"));
  assert.ok(!isCommand("check http.url, the network, and that the receiver runs"));
  assert.equal(shellWord("it's"), "'it'\\''s'");
  assert.equal(queueOf("task3.reports"), "reports");
  assert.equal(queueOf("tasks"), null);
  assert.deepEqual(withoutHint("a (b) (hint: c (d))"), { text: "a (b)", hint: "c (d)" });
});
