# A private one-node Kafka, broker and controller, below DIR/kafka.
# Needs say.sh, cache.sh, kafka_jars.sh, ports.sh, process.sh.

kafka_unavailable() {
  for tool in java kcat; do
    if ! command -v $tool >/dev/null; then echo "no $tool on this machine"; return 0; fi
  done
  if kafka_fetch; then return 1; fi
}

# No automatic topics: a misspelt name must fail. One partition for each internal topic: fifty of
# them only delay the first consumer. A killed broker cannot restart before its session has ended,
# so the session is short. Clients of the second listener are told the port of a gate, which a test
# opens between them and the broker.
kafka_properties() (
  port=$(cat "$1/kafka/port")
  behind=$(cat "$1/kafka/port_behind_gate")
  gate=$(cat "$1/kafka/gate_port")
  controller=$(cat "$1/kafka/controller_port")
  cat <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,GATED://127.0.0.1:$behind,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port,GATED://127.0.0.1:$gate
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,GATED:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=$1/kafka/data
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
EOF
)

kafka_prepare() (
  state=$1/kafka
  [ ! -f "$state/formatted" ] || exit 0
  rm -rf "$state/data"
  port_free >"$state/port"
  for name in controller_port port_behind_gate gate_port; do port_free >"$state/$name"; done
  kafka_properties "$1" >"$state/server.properties"
  # An id as Kafka writes them: 16 bytes in URL-safe base64, no leading dash.
  id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=' | sed 's/^-/A/')
  java -cp "$(kafka_home)/libs/*" kafka.tools.StorageTool format -t "$id" --standalone \
    -c "$state/server.properties" >"$state/format.log" 2>&1 </dev/null || {
    tail -n 20 "$state/format.log" >&2
    die "kafka: the data folder could not be formatted"
  }
  : >"$state/formatted"
)

kafka_spawn() {
  process_spawn "$1/kafka/pid" "$1/kafka/log" java -Xmx512m \
    -Dorg.slf4j.simpleLogger.showDateTime=true \
    -Dorg.slf4j.simpleLogger.dateTimeFormat='yyyy-MM-dd HH:mm:ss.SSS' \
    -cp "$(kafka_home)/libs/*" kafka.Kafka "$1/kafka/server.properties"
}

kafka_ready() {
  kcat -L -m 2 -b "127.0.0.1:$(cat "$1/kafka/port")" 2>/dev/null | grep -q 'broker 1 at'
}

kafka_environment() {
  environment_line OUTBOX_TEST_KAFKA "127.0.0.1:$(cat "$1/kafka/port")"
  environment_line OUTBOX_TEST_KAFKA_BEHIND_GATE "$(cat "$1/kafka/port_behind_gate")"
  environment_line OUTBOX_TEST_KAFKA_GATE "$(cat "$1/kafka/gate_port")"
  environment_line OUTBOX_TEST_KAFKA_HOME "$(kafka_home)"
}

kafka_stop_signals() { echo 'TERM KILL'; }
kafka_kill_signal() { echo KILL; }

kafka_remove() { :; }
