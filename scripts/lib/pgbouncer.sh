# A private pgbouncer in transaction mode before the PostgreSQL of the same DIR.
# Needs say.sh, ports.sh, process.sh, server_user.sh, postgres.sh.

pgbouncer_program() {
  PATH=$PATH:/usr/sbin command -v pgbouncer
}

pgbouncer_unavailable() {
  if ! pgbouncer_program >/dev/null; then echo "no pgbouncer on this machine"; return 0; fi
  postgres_unavailable
}

pgbouncer_prepare() (
  state=$1/pgbouncer
  [ -f "$1/postgres/port" ] || die "pgbouncer needs postgres; hint: start postgres in $1 too"
  [ -f "$state/port" ] || port_free >"$state/port"
  cat >"$state/pgbouncer.ini" <<EOF
[databases]
* = host=127.0.0.1 port=$(cat "$1/postgres/port") user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $(cat "$state/port")
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 50
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
EOF
)

pgbouncer_spawn() {
  # shellcheck disable=SC2046 # A prefix of several words.
  process_spawn "$1/pgbouncer/pid" "$1/pgbouncer/log" $(server_user_prefix) \
    "$(pgbouncer_program)" "$1/pgbouncer/pgbouncer.ini"
}

pgbouncer_ready() {
  "$(postgres_bin)/pg_isready" --quiet --host=127.0.0.1 --port="$(cat "$1/pgbouncer/port")" \
    --dbname=postgres --username=postgres --timeout=2
}

pgbouncer_environment() {
  environment_line OUTBOX_TEST_PGBOUNCER \
    "postgresql://postgres@127.0.0.1:$(cat "$1/pgbouncer/port")/postgres"
}

# INT waits for transactions to end, TERM does not.
pgbouncer_stop_signals() { echo 'TERM KILL'; }
pgbouncer_kill_signal() { echo KILL; }

pgbouncer_remove() { :; }
