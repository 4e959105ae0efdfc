BEGIN;
CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, total numeric, paid boolean DEFAULT false);
INSERT INTO orders (id, total) VALUES (42, 12.5) ON CONFLICT (id) DO UPDATE SET paid = false;
SELECT outbox.enqueue('order', '42', 'OrderPlaced', '{"total": 12.5}');
COMMIT;

BEGIN;
UPDATE orders SET paid = true WHERE id = 42;  -- first the order, which locks it, then the event
INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload)
VALUES ('order', '42', 'OrderPaid', '{"by": "card"}');
COMMIT;
