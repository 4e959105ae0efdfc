-- The second row of the witness, from a transaction of its own: a restore may write one row under its original transaction id,
-- but not both (docs/design/lineage.md).
INSERT INTO {schema}.witness VALUES (pg_current_xact_id());
