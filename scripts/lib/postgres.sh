# A private PostgreSQL below DIR/postgres. Needs say.sh, ports.sh, process.sh, server_user.sh.

POSTGRES_OLDEST=14

# Prints the folder of the newest server programs installed, or of those that the user chose.
postgres_bin() (
  if [ -n "${OUTBOX_POSTGRES_BIN-}" ]; then
    [ -x "$OUTBOX_POSTGRES_BIN/postgres" ] || exit 1
    printf '%s\n' "$OUTBOX_POSTGRES_BIN"
    exit
  fi
  newest=0
  for bin in /usr/lib/postgresql/*/bin; do
    if [ ! -x "$bin/postgres" ] || [ ! -x "$bin/initdb" ]; then continue; fi
    version=${bin%/bin}
    version=${version##*/}
    case $version in '' | *[!0-9]*) continue ;; esac
    if [ "$version" -gt "$newest" ]; then newest=$version; fi
  done
  [ "$newest" -ge $POSTGRES_OLDEST ] || exit 1
  printf '/usr/lib/postgresql/%s/bin\n' "$newest"
)

postgres_unavailable() {
  if postgres_bin >/dev/null; then return 1; fi
  echo "no PostgreSQL server $POSTGRES_OLDEST or newer in ${OUTBOX_POSTGRES_BIN:-/usr/lib/postgresql}"
}

# The path of a Unix socket may have 107 bytes. If DIR is too long, a short folder is used.
postgres_socket_folder() (
  state=$1/postgres
  if [ -f "$state/socket_folder" ]; then
    folder=$(cat "$state/socket_folder")
  else
    folder=$state/socket
    longest=$folder/.s.PGSQL.65535.lock
    if [ ${#longest} -gt 100 ]; then folder=$(mktemp -d /tmp/outbox-socket.XXXXXX); fi
    printf '%s\n' "$folder" >"$state/socket_folder"
  fi
  server_user_folder "$folder"
  chmod 755 "$folder"
  printf '%s\n' "$folder"
)

# Replication slots and prepared transactions are for the tests. fsync stays on: figures and
# crash tests are meaningless without it.
postgres_settings() {
  cat <<EOF
listen_addresses = '127.0.0.1'
max_connections = 300
max_prepared_transactions = 20
wal_level = logical
shared_buffers = 256MB
max_wal_size = 4GB
fsync = on
autovacuum = on
log_line_prefix = '%m [%p] %q%u@%d '
EOF
}

postgres_prepare() (
  state=$1/postgres
  [ ! -f "$state/port" ] || exit 0
  bin=$(postgres_bin)
  server_user_folder "$state/data"
  # shellcheck disable=SC2046 # A prefix of several words.
  $(server_user_prefix) env LC_ALL=C "$bin/initdb" --pgdata="$state/data" --username=postgres \
    --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync >"$state/initdb.log" 2>&1 || {
    tail -n 20 "$state/initdb.log" >&2
    die "initdb failed"
  }
  postgres_settings >>"$state/data/postgresql.conf"
  port_free >"$state/port"
)

postgres_spawn() {
  postgres_socket=$(postgres_socket_folder "$1")
  # shellcheck disable=SC2046 # A prefix of several words.
  process_spawn "$1/postgres/pid" "$1/postgres/log" $(server_user_prefix) env LC_ALL=C \
    "$(postgres_bin)/postgres" -D "$1/postgres/data" -p "$(cat "$1/postgres/port")" \
    -k "$postgres_socket"
}

postgres_ready() {
  "$(postgres_bin)/pg_isready" --quiet --host=127.0.0.1 --port="$(cat "$1/postgres/port")" \
    --dbname=postgres --username=postgres --timeout=2
}

postgres_environment() {
  environment_line OUTBOX_TEST_POSTGRES \
    "postgresql://postgres@127.0.0.1:$(cat "$1/postgres/port")/postgres"
  environment_line OUTBOX_TEST_PGSOCKET "$(cat "$1/postgres/socket_folder")"
  environment_line OUTBOX_TEST_PGBIN "$(postgres_bin)"
}

# A fast shutdown; TERM would wait for the last client to leave.
postgres_stop_signals() { echo 'INT QUIT'; }
# pg_ctl's immediate mode: no checkpoint, recovery at the next start.
postgres_kill_signal() { echo QUIT; }

postgres_remove() {
  if [ -f "$1/postgres/socket_folder" ]; then rm -rf "$(cat "$1/postgres/socket_folder")"; fi
}
