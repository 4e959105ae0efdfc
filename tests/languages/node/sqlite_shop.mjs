// Run by node_test.py in the folder of shop.db. Prints what it saw as one JSON object.
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";

// NODE_PATH is for require() only.
const Database = createRequire(import.meta.url)("better-sqlite3");
const said = {};

function uuid7() {   // as in pg_shop.mjs
  const hex = Date.now().toString(16).padStart(12, "0") + "7" + randomBytes(10).toString("hex").slice(0, 19);
  const variant = (parseInt(hex[16], 16) & 3 | 8).toString(16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), variant + hex.slice(17, 20), hex.slice(20)].join("-");
}

// [sqlite]
const db = new Database("shop.db", { timeout: 5000 });
const newOrder = db.prepare("INSERT INTO orders (id, customer, cents) VALUES (?, ?, ?)");
const newEvent = db.prepare(
  "INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, 'order', ?, ?, ?)");
const place = db.transaction((id, customer, cents) => {
  const placed = uuid7();   // the view cannot return the id that it makes
  newOrder.run(id, customer, cents);
  newEvent.run(placed, String(id), "OrderPlaced", JSON.stringify({ customer, cents }));
  return placed;
});
const placed = place.immediate(42, "Zoë 🚀", 1250);   // BEGIN IMMEDIATE
// [/sqlite]
said.placed = placed;

function insert(key, type, payload) {
  const id = uuid7();
  newEvent.run(id, key, type, payload);
  return id;
}

function rolledBack() {
  try {
    db.transaction(() => {
      db.exec("INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0)");
      said.rolled_back = insert("41", "OrderPlaced", "{}");
      throw new Error("the order is not placed");
    }).immediate();
  } catch (error) {
    if (error.message !== "the order is not placed") throw error;
  }
}

function bytes() {
  said.bytes = uuid7();
  const picture = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
  db.prepare("INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload, content_type) " +
             "VALUES (?, 'picture', '7', 'Uploaded', ?, 'application/octet-stream')").run(said.bytes, picture);
}

function own() {
  said.own = uuid7();
  db.prepare("INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload, headers, occurred_at) " +
             "VALUES (?, 'order', '42', 'OrderShipped', '{}', ?, ?)")
    .run(said.own, JSON.stringify({ tenant: "a" }), new Date("2001-02-03T04:05:06.789Z").toISOString());
}

function refused() {
  db.transaction(() => {
    said.kept = insert("45", "OrderPlaced", "{}");
    // [sqlite-refused]
    try {
      db.prepare("INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload, headers) " +
                 "VALUES ('order', '45', 'OrderPaid', '{}', ?)").run(JSON.stringify({ "a b": "c" }));
    } catch (error) {   // a SqliteError; the statement failed, the transaction goes on
      said.refused = [error.code, error.message];
    }
    // [/sqlite-refused]
  }).immediate();
}

/** What one trips over. */
function trips() {
  const told = (work) => {
    try {
      db.transaction(() => {
        work();
        throw new Error("nothing");
      }).immediate();
    } catch (error) {
      return error.message;
    }
  };
  const stale = () => {   // without immediate()
    const other = new Database("shop.db");
    try {
      other.transaction(() => {
        other.prepare("SELECT count(*) FROM orders").get();
        db.exec("UPDATE orders SET cents = cents + 1");
        other.exec("UPDATE orders SET cents = cents + 1");
      })();
    } catch (error) {
      return [error.code, error.message];
    } finally {
      other.close();
    }
  };
  return { stale: stale(), number: told(() => newEvent.run(uuid7(), 42, "OrderPlaced", "{}")),
           object: told(() => newEvent.run(uuid7(), "42", "OrderPlaced", { by: "card" })),
           bigint: told(() => newEvent.run(uuid7(), 42n, "OrderPlaced", "{}")) };
}

said.paid = insert("42", "OrderPaid", JSON.stringify({ by: "card" }));
rolledBack();
bytes();
own();
refused();
said.more = db.transaction(() => Array.from({ length: 20 }, (_, number) => {
  const type = `Step${String(number).padStart(2, "0")}`;
  return [insert("46", type, "{}"), "46", type];
})).immediate();
said.trips = trips();
db.close();
console.log(JSON.stringify(said));
