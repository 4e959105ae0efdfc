-- The witness's second row, from a transaction of its own: a restore may write one row under the transaction id that it had
-- in the original, but not both. Why: docs/design/lineage.md.
INSERT INTO {schema}.witness VALUES (pg_current_xact_id());
