# A private RabbitMQ node below DIR/rabbitmq, with its own epmd, everything on loopback.
# Needs say.sh, ports.sh, process.sh.

RABBITMQ_USER=outbox
RABBITMQ_PASSWORD='pa%40ss word'

rabbitmq_programs() { # the folder of rabbitmq-server and rabbitmqctl, without Debian's wrappers
  for folder in /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin; do
    if [ -x "$folder/rabbitmq-server" ]; then printf '%s\n' "$folder" && return 0; fi
  done
  return 1
}

rabbitmq_unavailable() {
  if ! rabbitmq_programs >/dev/null; then echo "no rabbitmq-server on this machine"; return 0; fi
  for tool in epmd openssl python3; do
    if ! command -v $tool >/dev/null; then echo "no $tool on this machine"; return 0; fi
  done
  return 1
}

# An authority, the server's certificate for localhost, and one of a client that is the user of that
# name.
rabbitmq_certificates() ( # FOLDER
  mkdir -p "$1"
  cd "$1" || exit
  ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
  # shellcheck disable=SC2086 # Several words.
  openssl req -x509 $ec -days 3650 -subj /CN=authority -keyout ca.key -out ca.pem
  for name in server client; do
    subject=/CN=localhost
    if [ $name = client ]; then subject=/CN=$RABBITMQ_USER; fi
    # shellcheck disable=SC2086 # Several words.
    openssl req $ec -subj $subject -keyout $name.key -out $name.csr
    echo 'subjectAltName = DNS:localhost' >$name.ext
    openssl x509 -req -in $name.csr -days 3650 -CA ca.pem -CAkey ca.key -CAcreateserial \
      -extfile $name.ext -out $name.pem
  done
)

# A limit of messages that tests can exceed. The write-ahead log of quorum queues is 512 MB unless it is limited.
rabbitmq_configuration() {
  cat <<EOF
listeners.tcp.1 = 127.0.0.1:$(cat "$1/rabbitmq/port")
listeners.ssl.1 = 127.0.0.1:$(cat "$1/rabbitmq/tls_port")
ssl_options.cacertfile = $1/rabbitmq/tls/ca.pem
ssl_options.certfile = $1/rabbitmq/tls/server.pem
ssl_options.keyfile = $1/rabbitmq/tls/server.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_cert_login_from = common_name
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = EXTERNAL
default_user = $RABBITMQ_USER
default_pass = $RABBITMQ_PASSWORD
max_message_size = 2097152
raft.wal_max_size_bytes = 33554432
vm_memory_high_watermark.relative = 0.4
disk_free_limit.absolute = 100MB
log.console = true
log.file = false
