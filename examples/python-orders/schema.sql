CREATE TABLE IF NOT EXISTS orders (
  id        uuid PRIMARY KEY,
  customer  uuid NOT NULL,
  request   text NOT NULL,                 -- the Idempotency-Key: a request that comes twice is one order
  currency  text NOT NULL,
  lines     jsonb NOT NULL,
  total     numeric(14, 2) NOT NULL,
  paid_at   timestamptz,
  UNIQUE (customer, request)
);
