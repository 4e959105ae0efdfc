# A private NATS server with JetStream, its data below DIR/nats.
# Needs say.sh, ports.sh, process.sh.

# A client that does not quote it in JSON cannot log in.
NATS_PASSWORD='a "secret"'
NATS_PASSWORD_IN_URL='a%20%22secret%22'

nats_program() {
  PATH=$PATH:/usr/sbin command -v nats-server
}

nats_unavailable() {
  if nats_program >/dev/null; then return 1; fi
  echo "no nats-server on this machine"
}

nats_prepare() (
  state=$1/nats
  [ -f "$state/port" ] || port_free >"$state/port"
  mkdir -p "$state/data" "$state/ports"
  cat >"$state/nats.conf" <<EOF
host = "127.0.0.1"
port = $(cat "$state/port")
server_name = "outbox-test"
ports_file_dir = "$state/ports"
jetstream {
  store_dir = "$state/data"
  max_file_store = 4GB
  max_memory_store = 256MB
}
authorization {
  user = "outbox"
  password = "$(printf '%s' "$NATS_PASSWORD" | sed 's/"/\\"/g')"
}
EOF
)

nats_spawn() {
  process_spawn "$1/nats/pid" "$1/nats/log" "$(nats_program)" --config "$1/nats/nats.conf"
}

# The server writes this file when it listens.
nats_ready() {
  [ -s "$1/nats/ports/nats-server_$(process_running "$1/nats/pid").ports" ]
}

nats_environment() {
  environment_line OUTBOX_TEST_NATS \
    "nats://outbox:$NATS_PASSWORD_IN_URL@127.0.0.1:$(cat "$1/nats/port")"
  environment_line OUTBOX_TEST_NATS_PASSWORD "$NATS_PASSWORD"
  environment_line OUTBOX_TEST_NATS_SERVER "$(nats_program)"
}

nats_stop_signals() { echo 'TERM KILL'; }
nats_kill_signal() { echo KILL; }

nats_remove() { :; }
