# A private ElasticMQ, which speaks SQS, but checks no signatures: its data below DIR/elasticmq, in SQLite. Its own database, H2, loses what
# it has confirmed when it is killed, or writes a gigabyte during the tests.
# Needs say.sh, cache.sh, maven.sh, ports.sh, process.sh.

ELASTICMQ_VERSION=1.7.1
ELASTICMQ_SQLITE_VERSION=3.46.1.3

elasticmq_home() {
  printf '%s/elasticmq-%s-sqlite-%s\n' "$(cache_dir)" "$ELASTICMQ_VERSION" "$ELASTICMQ_SQLITE_VERSION"
}

elasticmq_unavailable() {
  for tool in java python3; do
    if ! command -v $tool >/dev/null; then echo "no $tool on this machine"; return 0; fi
  done
  if maven_fetch "$(elasticmq_home)" "ElasticMQ $ELASTICMQ_VERSION" "org.elasticmq:elasticmq-server_2.13:$ELASTICMQ_VERSION" \
    "org.xerial:sqlite-jdbc:$ELASTICMQ_SQLITE_VERSION"; then return 1; fi
}

# What the system has been given survives a kill of the server: nothing is synced.
elasticmq_prepare() (
  state=$1/elasticmq
  [ -f "$state/port" ] || port_free >"$state/port"
  mkdir -p "$state/data"
  cat >"$state/elasticmq.conf" <<EOF
include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = $(cat "$state/port"), context-path = "" }
rest-sqs { enabled = true, bind-hostname = "127.0.0.1", bind-port = $(cat "$state/port"), sqs-limits = strict }
messages-storage {
  enabled = true
  driver-class = "org.sqlite.JDBC"
  uri = "jdbc:sqlite:$state/data/messages.db?journal_mode=WAL&synchronous=OFF&busy_timeout=5000"
}
EOF
)

elasticmq_spawn() {
  process_spawn "$1/elasticmq/pid" "$1/elasticmq/log" java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dfile.encoding=UTF-8 -Dorg.sqlite.tmpdir="$1/elasticmq/data" \
    -Dconfig.file="$1/elasticmq/elasticmq.conf" -cp "$(elasticmq_home)/libs/*" org.elasticmq.server.Main
}

# Any answer will do.
elasticmq_ready() {
  python3 -c 'import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=5)
connection.request("GET", "/")
connection.getresponse()' "$(cat "$1/elasticmq/port")" 2>/dev/null
}

elasticmq_environment() {
  environment_line OUTBOX_TEST_SQS "http://127.0.0.1:$(cat "$1/elasticmq/port")"
}

elasticmq_stop_signals() { echo 'TERM KILL'; }
elasticmq_kill_signal() { echo KILL; }

elasticmq_remove() { :; }
