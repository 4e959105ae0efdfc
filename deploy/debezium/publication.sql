-- What Debezium needs in the database of the events: docs/guide/debezium.md. A superuser runs it.

-- Tasks are rows of the same table, and no messages. PostgreSQL 14 has neither lists of columns nor
-- WHERE here: leave both out, and write no tasks there.
CREATE PUBLICATION outbox_debezium
  FOR TABLE outbox.event (id, aggregate_type, aggregate_id, event_type, payload)
    WHERE (NOT starts_with(aggregate_type, 'outbox-task:'))
  WITH (publish = 'insert', publish_via_partition_root = true);

-- The login of the connector; \password outbox_debezium sets its password. With REPLICATION it can
-- read the whole write-ahead log, so let it connect only from where Kafka Connect runs.
CREATE ROLE outbox_debezium LOGIN REPLICATION;
GRANT USAGE ON SCHEMA outbox TO outbox_debezium;
GRANT SELECT ON outbox.event TO outbox_debezium;
