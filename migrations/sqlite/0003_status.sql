-- What `outbox events` reads (docs/design/status.md).

-- The corrected copy of an event that left outbox_parked as edited.
ALTER TABLE outbox_parked_end ADD COLUMN replaced_by BLOB;

-- Where the history of a subscription begins anew, few rows; and its settlements in the order in which they were written (by their
-- rowid).
CREATE INDEX outbox_settlement_beginnings ON outbox_settlement (subscription, generation, id) WHERE kind IN ('claim', 'reset');
CREATE INDEX outbox_settlement_by_id ON outbox_settlement (subscription);
