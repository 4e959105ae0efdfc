// Run by node_test.py with DATABASE_URL. Prints what it saw as one JSON object.
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";

// NODE_PATH is for require() only.
const pg = createRequire(import.meta.url)("pg");
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });

// [uuid7]
function uuid7() {   // or: import { v7 } from "uuid"
  const hex = Date.now().toString(16).padStart(12, "0") + "7" + randomBytes(10).toString("hex").slice(0, 19);
  const variant = (parseInt(hex[16], 16) & 3 | 8).toString(16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), variant + hex.slice(17, 20), hex.slice(20)].join("-");
}
// [/uuid7]

// [transaction]
async function inTransaction(work) {   // on one client: pool.query() takes another one for each statement
  await client.query("BEGIN");
  try {
    const result = await work();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}
// [/transaction]

async function place() {
  // [place]
  const placed = await inTransaction(async () => {
    await client.query("INSERT INTO orders (id, customer, cents) VALUES ($1, $2, $3)", [42, "Zoë 🚀", 1250]);
    const { rows } = await client.query("SELECT outbox.enqueue('order', $1, 'OrderPlaced', $2) AS id",
                                        [42, JSON.stringify({ customer: "Zoë 🚀", cents: 1250 })]);
    return rows[0].id;
  });
  // [/place]
  return placed;
}

async function byView() {
  // [view]
  const paid = await inTransaction(async () => {
    await client.query("UPDATE orders SET paid = true WHERE id = $1", [42]);   // first the order, which locks it
    const { rows } = await client.query(
      "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) " +
      "VALUES ('order', $1, 'OrderPaid', $2) RETURNING id", ["42", JSON.stringify({ by: "card" })]);
    return rows[0].id;
  });
  // [/view]
  return paid;
}

async function rolledBack() {
  let id;
  await inTransaction(async () => {
    await client.query("INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0)");
    id = (await client.query("SELECT outbox.enqueue('order', 41, 'OrderPlaced', '{}') AS id")).rows[0].id;
    throw new Error("the business says no");
  }).catch(() => {});
  return id;
}

async function many() {
  // [many]
  const events = [["43", "OrderPlaced"], ["43", "OrderPaid"], ["44", "OrderPlaced"]].map(([key, type], index) => (
    { aggregate_type: "order", aggregate_id: key, event_type: type, payload: { number: index + 1 } }));
  const { rows } = await client.query("SELECT id FROM outbox.enqueue_many($1) AS id", [JSON.stringify(events)]);
  // [/many]
  return rows.map((row) => row.id);
}

async function picture() {
  // [bytes]
  const picture = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
  const { rows } = await client.query(   // ::bytea, because the driver says nothing of the type
    "SELECT outbox.enqueue('picture', 7, 'Uploaded', $1::bytea, content_type => 'application/octet-stream') AS id", [picture]);
  // [/bytes]
  return rows[0].id;
}

async function ownId() {
  // [own]
  const own = uuid7();
  await client.query(
    "SELECT outbox.enqueue('order', 42, 'OrderShipped', '{}', headers => $1, id => $2, occurred_at => $3)",
    [{ tenant: "a" }, own, new Date("2001-02-03T04:05:06.789Z")]);
  // [/own]
  return own;
}

async function refused() {
  let refusal;
  const kept = await inTransaction(async () => {
    const { rows } = await client.query("SELECT outbox.enqueue('order', 45, 'OrderPlaced', '{}') AS id");
    // [refused]
    await client.query("SAVEPOINT before");
    try {
      await client.query("SELECT outbox.enqueue('order', 45, 'OrderPaid', '{}', headers => $1)", [{ "a b": "c" }]);
    } catch (error) {
      refusal = { sqlstate: error.code, message: error.message, hint: error.hint };
      await client.query("ROLLBACK TO SAVEPOINT before");
    }
    // [/refused]
    return rows[0].id;
  });
  return [kept, refusal];
}

async function task() {
  const { rows } = await client.query("SELECT outbox.enqueue_task('reports', 'report.make', $1, key => $2) AS id",
                                      [JSON.stringify({ month: "2026-10" }), "customer-42"]);
  return rows[0].id;
}

// [receive]
function receive(message) {
  return inTransaction(async () => {
    const { rows } = await client.query("SELECT outbox.receive('billing', $1) AS first", [message]);
    if (rows[0].first) await client.query("UPDATE orders SET cents = cents WHERE id = 42");   // the effect of the message
    return rows[0].first;
  });
}
// [/receive]

// What the page warns of: arrays are arrays of PostgreSQL, not JSON; bytes are taken for text.
async function whatTrips() {
  const said = {};
  const enqueue = "SELECT outbox.enqueue('order', 46, 'OrderPlaced', $1";
  const tries = { array: [enqueue + ")", [["a", "b"]]],
                  bytes: [enqueue + ", content_type => 'image/png')", [Buffer.from([0, 255])]],
                  many: ["SELECT outbox.enqueue_many($1)", [[{ aggregate_type: "order" }]]] };
  for (const [name, [statement, values]] of Object.entries(tries)) {
    await client.query(statement, values).catch((error) => { said[name] = error.message; });
  }
  return said;
}

async function named() {
  const more = [];
  const { rows } = await client.query("SELECT outbox.enqueue('order', $1, 'Empty', $2) AS id", ["48", []]);
  more.push([rows[0].id, "48", "Empty"]);
  for (let number = 0; number < 3; number++) {   // a prepared statement of this name
    const { rows } = await client.query({ name: "enqueue", text: "SELECT outbox.enqueue('order', $1, $2, '{}') AS id",
                                          values: ["47", `Step${number}`] });
    more.push([rows[0].id, "47", `Step${number}`]);
  }
  return more;
}

await client.connect();
const said = { placed: await place(), paid: await byView(), rolled_back: await rolledBack(), many: await many(),
               bytes: await picture(), own: await ownId() };
[said.kept, said.refused] = await refused();
said.task = await task();
said.received = [await receive("message-1"), await receive("message-1")];
said.trips = await whatTrips();
if (!process.env.POOLER) said.more = await named();
await client.end();
console.log(JSON.stringify(said));
