# A private one-node Kafka, broker and controller, below DIR/kafka.
# Needs say.sh, cache.sh, certificates.sh, kafka_jars.sh, ports.sh, process.sh.

KAFKA_USER=outbox
# Characters that mean something in settings of Kafka and in shells.
KAFKA_PASSWORD='pa$$ "word'

kafka_unavailable() {
  for tool in java kcat openssl; do
    if ! command -v $tool >/dev/null; then echo "no $tool on this machine"; return 0; fi
  done
  if kafka_fetch; then return 1; fi
}

# No automatic topics: a misspelt name must fail. One partition for each internal topic: fifty of
# them only delay the first consumer. A killed broker cannot restart before its session has ended,
# so the session is short. Clients of GATED are told the port of a gate, which a test opens between
# them and the broker. TLS, MTLS (with the client's certificate) and LOGIN (TLS and a password) are
# for localhost, the name in the certificate.
kafka_properties() (
  port=$(cat "$1/kafka/port")
  behind=$(cat "$1/kafka/port_behind_gate")
  gate=$(cat "$1/kafka/gate_port")
  controller=$(cat "$1/kafka/controller_port")
  tls=$(cat "$1/kafka/tls_port")
  mtls=$(cat "$1/kafka/mtls_port")
  login=$(cat "$1/kafka/login_port")
  password=$(printf '%s' "$KAFKA_PASSWORD" | sed 's/"/\\\\"/g')
  modules=org.apache.kafka.common.security
  cat <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,GATED://127.0.0.1:$behind,CONTROLLER://127.0.0.1:$controller,TLS://127.0.0.1:$tls,MTLS://127.0.0.1:$mtls,LOGIN://127.0.0.1:$login
advertised.listeners=PLAINTEXT://127.0.0.1:$port,GATED://127.0.0.1:$gate,TLS://localhost:$tls,MTLS://localhost:$mtls,LOGIN://localhost:$login
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,GATED:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,MTLS:SSL,LOGIN:SASL_SSL
ssl.keystore.type=PEM
ssl.keystore.location=$1/kafka/tls/keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location=$1/kafka/tls/ca.pem
listener.name.mtls.ssl.client.auth=required
listener.name.login.sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256,PLAIN
listener.name.login.scram-sha-512.sasl.jaas.config=$modules.scram.ScramLoginModule required;
listener.name.login.scram-sha-256.sasl.jaas.config=$modules.scram.ScramLoginModule required;
listener.name.login.plain.sasl.jaas.config=$modules.plain.PlainLoginModule required user_$KAFKA_USER="$password";
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
  for name in controller_port port_behind_gate gate_port tls_port mtls_port login_port; do
    port_free >"$state/$name"
  done
  certificates_make "$state/tls" "$KAFKA_USER" >"$state/tls.log" 2>&1 || die "$(cat "$state/tls.log")"
  cat "$state/tls/server.key" "$state/tls/server.pem" >"$state/tls/keystore.pem"
  kafka_properties "$1" >"$state/server.properties"
  # An id as Kafka writes them: 16 bytes in URL-safe base64, no leading dash.
  id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=' | sed 's/^-/A/')
  user="name=$KAFKA_USER,password=$KAFKA_PASSWORD"
  java -cp "$(kafka_home)/libs/*" kafka.tools.StorageTool format -t "$id" --standalone \
    --add-scram "SCRAM-SHA-512=[$user]" --add-scram "SCRAM-SHA-256=[$user]" \
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
  environment_line OUTBOX_TEST_KAFKA_TLS_FOLDER "$1/kafka/tls"
  environment_line OUTBOX_TEST_KAFKA_TLS "localhost:$(cat "$1/kafka/tls_port")"
  environment_line OUTBOX_TEST_KAFKA_MTLS "localhost:$(cat "$1/kafka/mtls_port")"
  environment_line OUTBOX_TEST_KAFKA_LOGIN "localhost:$(cat "$1/kafka/login_port")"
  environment_line OUTBOX_TEST_KAFKA_USER "$KAFKA_USER"
  environment_line OUTBOX_TEST_KAFKA_PASSWORD "$KAFKA_PASSWORD"
  environment_line OUTBOX_TEST_KAFKA_HOME "$(kafka_home)"
}

kafka_stop_signals() { echo 'TERM KILL'; }
kafka_kill_signal() { echo KILL; }

kafka_remove() { :; }
