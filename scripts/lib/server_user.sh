# PostgreSQL and pgbouncer refuse to run as root; for root they run as another user. Needs say.sh.

server_user() {
  if id postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi
}

# Runs a command as the user of the servers. It consists of external commands only, so it can also be
# the prefix of a command for process_spawn.
server_user_prefix() {
  if [ "$(id -u)" -eq 0 ]; then
    echo "setpriv --reuid=$(server_user) --regid=$(id -g "$(server_user)") --init-groups --"
  fi
}

as_server_user() {
  # shellcheck disable=SC2046 # A prefix of several words.
  $(server_user_prefix) "$@"
}

# server_user_folder DIR: makes DIR, private to that user, which must be able to reach it.
server_user_folder() (
  mkdir -p "$1"
  chmod 700 "$1"
  if [ "$(id -u)" -ne 0 ]; then exit 0; fi
  chown "$(server_user)" "$1"
  if as_server_user test -w "$1"; then exit 0; fi
  closed=$1
  until as_server_user test -x "${closed%/*}/"; do closed=${closed%/*}; done
  die "user $(server_user) cannot reach $1; hint: chmod go+x $closed, or choose another folder"
)
