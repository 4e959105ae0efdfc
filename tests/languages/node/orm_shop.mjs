// Run by node_test.py with DATABASE_URL. Prints what it saw as one JSON object.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);   // NODE_PATH is for require() only
const { DataSource, EntitySchema } = require("typeorm");
const { drizzle } = require("drizzle-orm/node-postgres");
const { bigint, boolean, jsonb, pgSchema, pgTable, text, timestamp, uuid } = require("drizzle-orm/pg-core");
const { eq } = require("drizzle-orm");
const { Client } = require("pg");

const said = { more: [] };

// [typeorm]
class Event {}   // rows are only added; the view reads as empty
const eventSchema = new EntitySchema({
  name: "Event", target: Event, schema: "outbox", tableName: "new_event",
  columns: {
    id: { type: "uuid", primary: true, generated: "uuid" },
    aggregateType: { name: "aggregate_type", type: "text" },
    aggregateId: { name: "aggregate_id", type: "text" },
    eventType: { name: "event_type", type: "text" },
    payload: { type: "jsonb" },
    headers: { type: "jsonb", nullable: true },
  },
});
// [/typeorm]

class Order {}
const orderSchema = new EntitySchema({
  name: "Order", target: Order, tableName: "orders",
  columns: { id: { type: "bigint", primary: true }, customer: { type: "text" }, cents: { type: "bigint" }, paid: { type: "boolean", default: false } },
});

async function withTypeorm() {
  const statements = [];
  const logger = { logQuery: (query) => statements.push(query.split(" ").slice(0, 2).join(" ")), logQueryError() {}, logQuerySlow() {},
                   logSchemaBuild() {}, logMigration() {}, log() {} };
  // [typeorm-source]
  const source = new DataSource({ type: "postgres", url: process.env.DATABASE_URL, entities: [orderSchema, eventSchema],
                                  installExtensions: false });   // or TypeORM creates the extension uuid-ossp
  // [/typeorm-source]
  source.setOptions({ logger, logging: true });
  await source.initialize();
  await source.manager.insert(Order, { id: "42", customer: "Zoë 🚀", cents: "1250" });
  // [typeorm-save]
  const paid = await source.transaction(async (manager) => {
    await manager.update(Order, { id: "42" }, { paid: true });   // first the order
    const event = await manager.save(Event, { aggregateType: "order", aggregateId: "42", eventType: "OrderPaid", payload: { by: "card" } });
    return event.id;
  });
  // [/typeorm-save]
  said.more.push([paid, "42", "OrderPaid"]);
  const called = await source.transaction(async (manager) => {
    const [{ id }] = await manager.query("SELECT outbox.enqueue('order', $1, 'OrderShipped', $2) AS id", ["42", JSON.stringify([])]);
    return id;
  });
  said.more.push([called, "42", "OrderShipped"]);
  const steps = Array.from({ length: 10 }, (_, number) => ({ aggregateType: "order", aggregateId: "46", eventType: `Step${number}`, payload: [number] }));
  const inserted = await source.manager.insert(Event, steps);
  inserted.identifiers.forEach(({ id }, number) => said.more.push([id, "46", `Step${number}`]));
  await source.transaction(async (manager) => {   // what the page warns of: one save() of both
    const order = await manager.findOneBy(Order, { id: "42" });
    order.cents = "1251";
    const event = manager.create(Event, { aggregateType: "order", aggregateId: "49", eventType: "OrderChanged", payload: {} });
    statements.length = 0;
    await manager.save([order, event]);
    said.one_save = statements.filter((statement) => /^(INSERT|UPDATE)/.test(statement));
    said.more.push([event.id, "49", "OrderChanged"]);
  });
  await source.manager.insert(Event, { aggregateType: "order", aggregateId: "42", eventType: " ", payload: {} })
    .catch((error) => { said.typeorm = [error.name, error.message, error.driverError.code]; });
  await source.destroy();
}

// [drizzle]
const newEvent = pgSchema("outbox").table("new_event", {   // rows are only added; the view reads as empty
  id: uuid(), aggregateType: text("aggregate_type").notNull(), aggregateId: text("aggregate_id"), eventType: text("event_type").notNull(),
  payload: jsonb().notNull(), headers: jsonb(), occurredAt: timestamp("occurred_at", { withTimezone: true }),
});
// [/drizzle]
const orders = pgTable("orders", { id: bigint({ mode: "number" }).primaryKey(), paid: boolean() });

async function withDrizzle() {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  const db = drizzle(client);
  // [drizzle-insert]
  const ids = await db.transaction(async (tx) => {
    await tx.update(orders).set({ paid: true }).where(eq(orders.id, 42));   // first the order
    return tx.insert(newEvent).values([
      { aggregateType: "order", aggregateId: "47", eventType: "OrderPaid", payload: { by: "card" } },
      { aggregateType: "order", aggregateId: "47", eventType: "OrderShipped", payload: [] }]).returning({ id: newEvent.id });
  });
  // [/drizzle-insert]
  said.more.push([ids[0].id, "47", "OrderPaid"], [ids[1].id, "47", "OrderShipped"]);
  await db.insert(newEvent).values({ aggregateType: "order", aggregateId: "47", eventType: " ", payload: {} })
    .catch((error) => { said.drizzle = [error.cause.message, error.cause.code]; });
  await client.end();
}

await withTypeorm();
await withDrizzle();
console.log(JSON.stringify(said));
