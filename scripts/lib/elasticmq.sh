# A private ElasticMQ, which speaks SQS: its data below DIR/elasticmq. It checks no signatures.
# Needs say.sh, cache.sh, maven.sh, ports.sh, process.sh.

ELASTICMQ_VERSION=1.7.1

elasticmq_home() {
  printf '%s/elasticmq-%s\n' "$(cache_dir)" "$ELASTICMQ_VERSION"
}

elasticmq_pom() {
  cat <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>outbox</groupId>
  <artifactId>elasticmq-for-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.elasticmq</groupId>
      <artifactId>elasticmq-server_2.13</artifactId>
      <version>$ELASTICMQ_VERSION</version>
    </dependency>
  </dependencies>
</project>
EOF
}

elasticmq_unavailable() {
  for tool in java python3; do
    if ! command -v $tool >/dev/null; then echo "no $tool on this machine"; return 0; fi
  done
  if maven_fetch "$(elasticmq_home)" "ElasticMQ $ELASTICMQ_VERSION" elasticmq_pom; then return 1; fi
}

# Without WRITE_DELAY=0 its database keeps what it has confirmed in memory for half a second, where a kill loses it.
elasticmq_prepare() (
  state=$1/elasticmq
  [ -f "$state/port" ] || port_free >"$state/port"
  mkdir -p "$state/data"
  cat >"$state/elasticmq.conf" <<EOF
include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = $(cat "$state/port"), context-path = "" }
rest-sqs { enabled = true, bind-hostname = "127.0.0.1", bind-port = $(cat "$state/port"), sqs-limits = strict }
messages-storage { enabled = true, uri = "jdbc:h2:file:$state/data/messages;WRITE_DELAY=0" }
EOF
)

elasticmq_spawn() {
  process_spawn "$1/elasticmq/pid" "$1/elasticmq/log" java -Xmx256m -XX:+UseSerialGC \
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
