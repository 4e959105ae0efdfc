# A private Redis below DIR/redis. Needs ports.sh, process.sh.

REDIS_PASSWORD=outbox

redis_unavailable() {
  for tool in redis-server redis-cli; do
    if ! command -v $tool >/dev/null; then echo "no $tool on this machine"; return 0; fi
  done
  return 1
}

# Nothing that was confirmed is lost when it is killed. Its limit of a message is the smallest that
# it allows.
redis_prepare() (
  state=$1/redis
  [ ! -f "$state/port" ] || exit 0
  mkdir -p "$state/data"
  port_free >"$state/port"
  cat >"$state/redis.conf" <<EOF
bind 127.0.0.1
port $(cat "$state/port")
dir "$state/data"
requirepass $REDIS_PASSWORD
appendonly yes
appendfsync always
save ""
proto-max-bulk-len 1mb
EOF
)

redis_spawn() {
  process_spawn "$1/redis/pid" "$1/redis/log" redis-server "$1/redis/redis.conf"
}

# While it loads its data it answers with an error.
redis_ready() {
  [ "$(REDISCLI_AUTH=$REDIS_PASSWORD redis-cli -h 127.0.0.1 -p "$(cat "$1/redis/port")" ping \
    2>/dev/null)" = PONG ]
}

redis_environment() {
  environment_line OUTBOX_TEST_REDIS \
    "redis://:$REDIS_PASSWORD@127.0.0.1:$(cat "$1/redis/port")"
}

redis_stop_signals() { echo TERM; }
redis_kill_signal() { echo KILL; }

redis_remove() { :; }
