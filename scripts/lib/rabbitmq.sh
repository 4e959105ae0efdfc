# A private RabbitMQ node below DIR/rabbitmq: its own name, cookie and epmd, everything on loopback.
# Needs say.sh, certificates.sh, ports.sh, process.sh.

RABBITMQ_USER=outbox
# A client that does not decode it in an address cannot log in.
RABBITMQ_PASSWORD='pa%40ss word'
RABBITMQ_PASSWORD_IN_URL='pa%2540ss%20word'

# The folder of rabbitmq-server and rabbitmqctl without Debian's wrappers, which use the machine's own
# node and user.
rabbitmq_programs() {
  for folder in /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin; do
    if [ -x "$folder/rabbitmq-server" ]; then printf '%s\n' "$folder" && return 0; fi
  done
  return 1
}

rabbitmq_unavailable() {
  if ! rabbitmq_programs >/dev/null; then echo 'no rabbitmq-server on this machine'; return 0; fi
  for tool in epmd openssl setpriv; do
    if ! command -v $tool >/dev/null; then echo "no $tool on this machine"; return 0; fi
  done
  return 1
}

# The limit of a message is one that tests can exceed. The write-ahead log of quorum queues is 512 MB
# unless it is limited.
rabbitmq_configuration() { # DIR
  cat <<END
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
management.tcp.ip = 127.0.0.1
management.tcp.port = $(cat "$1/rabbitmq/management_port")
max_message_size = 2097152
raft.wal_max_size_bytes = 33554432
vm_memory_high_watermark.relative = 0.4
disk_free_limit.absolute = 100MB
log.console = true
log.file = false
END
}

# What the server and rabbitmqctl need to find this node, and nothing of the machine's.
rabbitmq_settings() { # DIR
  state=$1/rabbitmq
  cat <<END
export HOME='$state'
export ERL_EPMD_ADDRESS=127.0.0.1
export ERL_EPMD_PORT=$(cat "$state/epmd_port")
export RABBITMQ_CONF_ENV_FILE='$state/none'
export RABBITMQ_NODENAME=outbox@localhost
export RABBITMQ_DIST_PORT=$(cat "$state/dist_port")
export RABBITMQ_CONFIG_FILE='$state/rabbitmq.conf'
export RABBITMQ_ADVANCED_CONFIG_FILE='$state/none'
export RABBITMQ_ENABLED_PLUGINS_FILE='$state/plugins'
export RABBITMQ_MNESIA_BASE='$state/data'
export RABBITMQ_LOG_BASE='$state/data'
export RABBITMQ_GENERATED_CONFIG_DIR='$state/data'
export RABBITMQ_PID_FILE='$state/data/pid'
loopback='-kernel inet_dist_use_interface {127,0,0,1}'
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="\$loopback"
export RABBITMQ_CTL_ERL_ARGS="\$loopback"
END
}

# Runs the server in place of this script. Its epmd, without which a node does not start, ends with it.
rabbitmq_run() { # DIR
  cat <<END
#!/bin/sh
set -eu
. '$1/rabbitmq/settings'
setpriv --pdeathsig KILL epmd -address 127.0.0.1 -port \$ERL_EPMD_PORT </dev/null >/dev/null 2>&1 &
until epmd -port \$ERL_EPMD_PORT -names >/dev/null 2>&1; do sleep 0.1; done
# Then the script replaces itself by the server, which gets the signals.
export RUNNING_UNDER_SYSTEMD=true
exec '$(rabbitmq_programs)/rabbitmq-server'
END
}

rabbitmq_ctl() { # DIR
  cat <<END
#!/bin/sh
. '$1/rabbitmq/settings'
exec '$(rabbitmq_programs)/rabbitmqctl' "\$@"
END
}

rabbitmq_prepare() (
  state=$1/rabbitmq
  mkdir -p "$state/data"
  for name in port tls_port management_port epmd_port dist_port; do
    [ -f "$state/$name" ] || port_free >"$state/$name"
  done
  if [ ! -f "$state/tls/client.pem" ]; then
    certificates_make "$state/tls" "$RABBITMQ_USER" >"$state/tls.log" 2>&1 || die "$(cat "$state/tls.log")"
  fi
  echo '[rabbitmq_auth_mechanism_ssl,rabbitmq_management].' >"$state/plugins"
  rabbitmq_configuration "$1" >"$state/rabbitmq.conf"
  rabbitmq_settings "$1" >"$state/settings"
  rabbitmq_run "$1" >"$state/run"
  rabbitmq_ctl "$1" >"$state/ctl"
  chmod +x "$state/run" "$state/ctl"
)

rabbitmq_spawn() {
  process_spawn "$1/rabbitmq/pid" "$1/rabbitmq/log" "$1/rabbitmq/run"
}

# It listens last of all.
rabbitmq_ready() {
  for name in port tls_port; do
    address=$(printf '0100007F:%04X 00000000:0000 0A' "$(cat "$1/rabbitmq/$name")")
    grep -q "$address" /proc/net/tcp || return 1
  done
  # The first handshake makes it load what it needs for TLS.
  timeout 5 openssl s_client -connect "127.0.0.1:$(cat "$1/rabbitmq/tls_port")" \
    -CAfile "$1/rabbitmq/tls/ca.pem" </dev/null >/dev/null 2>&1
}

rabbitmq_environment() {
  environment_line OUTBOX_TEST_RABBITMQ \
    "amqp://$RABBITMQ_USER:$RABBITMQ_PASSWORD_IN_URL@127.0.0.1:$(cat "$1/rabbitmq/port")"
  environment_line OUTBOX_TEST_RABBITMQ_PASSWORD "$RABBITMQ_PASSWORD"
  environment_line OUTBOX_TEST_RABBITMQ_SECURE "amqps://localhost:$(cat "$1/rabbitmq/tls_port")"
  environment_line OUTBOX_TEST_RABBITMQ_TLS "$1/rabbitmq/tls"
  environment_line OUTBOX_TEST_RABBITMQ_MANAGEMENT \
    "http://127.0.0.1:$(cat "$1/rabbitmq/management_port")"
  environment_line OUTBOX_TEST_RABBITMQ_CTL "$1/rabbitmq/ctl"
}

rabbitmq_stop_signals() { echo TERM; }
rabbitmq_kill_signal() { echo KILL; }

rabbitmq_remove() { :; }
