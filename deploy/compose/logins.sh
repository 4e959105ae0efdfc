#!/bin/sh
# PostgreSQL's image runs this once, when it has created the database: the logins of
# docs/stores/postgres.md. The roles belong to shop_owner, as if `outbox migrate` had made them, so
# that they can be granted before it runs.
set -eu

psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --no-psqlrc --quiet \
  --set ON_ERROR_STOP=1 --set database="$POSTGRES_DB" --set owner="$SHOP_OWNER_PASSWORD" \
  --set app="$SHOP_APP_PASSWORD" --set relay="$SHOP_RELAY_PASSWORD" --set console="$SHOP_CONSOLE_PASSWORD" <<'SQL'
BEGIN;
CREATE ROLE shop_owner LOGIN CREATEROLE PASSWORD :'owner';
CREATE ROLE shop_app LOGIN PASSWORD :'app';
CREATE ROLE shop_relay LOGIN PASSWORD :'relay';
CREATE ROLE shop_console LOGIN PASSWORD :'console';
GRANT CREATE ON DATABASE :"database" TO shop_owner;
SET ROLE shop_owner;
CREATE ROLE outbox_app NOLOGIN;
CREATE ROLE outbox_relay NOLOGIN;
CREATE ROLE outbox_console NOLOGIN;
GRANT outbox_app TO shop_app;
GRANT outbox_relay TO shop_relay;
GRANT outbox_console TO shop_console;
COMMIT;
SQL
