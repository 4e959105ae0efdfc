-- Run by psql_test.py with psql -qXAt. Prints what it saw as one JSON object.
\set ON_ERROR_STOP on

-- [place]
BEGIN;
INSERT INTO orders (id, customer, cents) VALUES (42, 'Zoë 🚀', 1250);
SELECT outbox.enqueue('order', 42, 'OrderPlaced', json_build_object('customer', customer, 'cents', cents)) AS placed
FROM orders WHERE id = 42 \gset
COMMIT;
-- [/place]

-- [view]
BEGIN;
UPDATE orders SET paid = true WHERE id = 42;   -- first the order, which locks it, then the event
INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload)
VALUES ('order', '42', 'OrderPaid', '{"by": "card"}') RETURNING id AS paid \gset
COMMIT;
-- [/view]

BEGIN;
INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0);
SELECT outbox.enqueue('order', 41, 'OrderPlaced', '{}') AS rolled_back \gset
ROLLBACK;

-- [many]
SELECT array_to_json(array_agg(id)) AS many FROM outbox.enqueue_many('[
  {"aggregate_type": "order", "aggregate_id": "43", "event_type": "OrderPlaced", "payload": {"number": 1}},
  {"aggregate_type": "order", "aggregate_id": "43", "event_type": "OrderPaid", "payload": {"number": 2}},
  {"aggregate_type": "order", "aggregate_id": "44", "event_type": "OrderPlaced", "payload": {"number": 3}}]') AS id \gset
-- [/many]

-- [bytes]
SELECT outbox.enqueue('picture', 7, 'Uploaded', decode(:'bytes', 'base64'),
                      content_type => 'application/octet-stream') AS bytes_id \gset
-- [/bytes]

SELECT outbox.new_id() AS own \gset
-- [own]
SELECT outbox.enqueue('order', 42, 'OrderShipped', '{}', headers => '{"tenant": "a"}', id => :'own',
                      occurred_at => '2001-02-03T04:05:06.789Z') = :'own' AS same \gset
-- [/own]

-- [refused]
BEGIN;
SELECT outbox.enqueue('order', 45, 'OrderPlaced', '{}') AS kept \gset
SAVEPOINT before;
\set ON_ERROR_STOP off
SELECT outbox.enqueue('order', 45, 'OrderPaid', '{}', headers => '{"a b": "c"}');
\echo :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE
ROLLBACK TO SAVEPOINT before;
COMMIT;
-- [/refused]
\set ON_ERROR_STOP on

-- [task]
SELECT outbox.enqueue_task('reports', 'report.make', '{"month": "2026-10"}', key => 'customer-42') AS task \gset
-- [/task]

-- [receive]
BEGIN;
SELECT outbox.receive('billing', 'message-1') AS first \gset
\if :first
  UPDATE orders SET cents = cents WHERE id = 42;   -- the effect of the message
\endif
COMMIT;
-- [/receive]
SELECT outbox.receive('billing', 'message-1') AS again \gset

SELECT json_build_object('placed', :'placed', 'paid', :'paid', 'rolled_back', :'rolled_back', 'many', :'many'::json,
                         'bytes', :'bytes_id', 'own', :'own', 'same', :'same'::boolean, 'kept', :'kept', 'task', :'task',
                         'received', json_build_array(:'first'::boolean, :'again'::boolean));
