#!/bin/sh
# Tests scripts/servers with a real PostgreSQL. Exit status 77 where there is none.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
servers=$root/scripts/servers

if ! why=$("$servers" check postgres); then
  echo "skipped: $why"
  exit 77
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/outbox-servers-test.XXXXXX")
chmod go+x "$dir" # for root, whose servers run as somebody else
bystander=
# shellcheck disable=SC2317 # The trap calls it.
clean_up() {
  if [ -n "$bystander" ]; then kill "$bystander" 2>/dev/null || true; fi
  if [ -f "$dir/pid" ]; then mv "$dir/pid" "$dir/s/postgres/pid"; fi
  for folder in "$dir/s" "$dir"/0*/s; do
    if [ -d "$folder" ]; then "$servers" stop "$folder" --remove >/dev/null 2>&1 || true; fi
  done
  rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

fail() {
  echo "FAILED: $*"
  exit 1
}

expect() { # WANTED GOT WHAT
  [ "$1" = "$2" ] || fail "$3: wanted '$1', got '$2'"
  echo "ok: $3"
}

run() { "$servers" "$@" >>"$dir/log" 2>&1 || { cat "$dir/log"; fail "servers $*"; }; }
ask() { psql "$OUTBOX_TEST_POSTGRES" --no-psqlrc --tuples-only --no-align --command "$1"; }
postmaster() { cut -d ' ' -f 1 "$dir/s/postgres/pid"; }
gone() { # PID: no such process, or only a zombie that nobody has collected
  state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1) || true
  case $state in '' | Z | X) echo yes ;; *) echo no ;; esac
}

run start "$dir/s" postgres
# shellcheck source=/dev/null
. "$dir/s/env"
expect 1 "$(ask 'SELECT 1')" 'it answers at the address in env'
expect on "$(ask 'SHOW fsync')" 'fsync is on'
expect 127.0.0.1 "$(ask 'SHOW listen_addresses')" 'it listens on the loopback only'
expect "$(cat "$dir/s/env")" "$("$servers" env "$dir/s")" 'env prints what start wrote'
socket="host=$OUTBOX_TEST_PGSOCKET port=$(ask 'SHOW port') user=postgres dbname=postgres"
expect 2 "$(psql "$socket" -XAtc 'SELECT 2')" 'it answers on its Unix socket'
if [ "$(id -u)" -eq 0 ]; then
  expect no "$([ "$(stat -c %u "/proc/$(postmaster)")" -eq 0 ] && echo yes || echo no)" \
    'it does not run as root'
fi

first=$(postmaster)
run start "$dir/s" postgres
expect "$first" "$(postmaster)" 'a second start reuses it'

ask 'CREATE TABLE kept AS SELECT 42 AS answer' >/dev/null
run kill "$dir/s" postgres
expect yes "$(gone "$first")" 'kill ends the process'
run up "$dir/s" postgres
expect 42 "$(ask 'SELECT answer FROM kept')" 'up starts it with the same data on the same port'
grep -q 'not properly shut down' "$dir/s/postgres/log" || fail 'kill let it shut down in peace'
echo 'ok: it had to recover'

# A pid is used again after its process has ended. The record of another process with the same
# pid differs in its start time.
mv "$dir/s/postgres/pid" "$dir/pid"
sleep 600 &
bystander=$!
set -- "$(cat "$dir/pid")"
# shellcheck disable=SC2086 # Its three fields.
set -- $1
printf '%s %s %s\n' "$bystander" "$2" "$3" >"$dir/s/postgres/pid"
run stop "$dir/s"
expect no "$(gone $bystander)" 'stop spares a stranger with the recorded pid'
run kill "$dir/s" postgres
expect no "$(gone $bystander)" 'so does kill'
mv "$dir/pid" "$dir/s/postgres/pid"

second=$(postmaster)
run stop "$dir/s"
expect yes "$(gone "$second")" 'stop ends the process'
children=$(for stat in /proc/[0-9]*/cwd; do readlink "$stat" 2>/dev/null; done |
  grep -c "^$dir/s/" || true)
expect 0 "$children" 'nothing is left running'
run start "$dir/s" postgres
expect 42 "$(ask 'SELECT answer FROM kept')" 'stop keeps the data'
run stop "$dir/s" --remove
expect no "$([ -e "$dir/s" ] && echo yes || echo no)" 'stop --remove leaves nothing'

long=$dir/$(printf '%080d' 0)/s
run start "$long" postgres
# shellcheck source=/dev/null
. "$long/env"
socket="host=$OUTBOX_TEST_PGSOCKET port=$(ask 'SHOW port') user=postgres dbname=postgres"
expect 3 "$(psql "$socket" -XAtc 'SELECT 3')" 'a path too long for a socket works'
run stop "$long" --remove
expect no "$([ -e "$OUTBOX_TEST_PGSOCKET" ] && echo yes || echo no)" 'its socket folder is gone'

if "$servers" start "$dir/s" mysql 2>/dev/null; then fail 'an unknown server was accepted'; fi
if "$servers" stop "$dir/nowhere" 2>/dev/null; then fail 'a folder without servers was accepted'; fi
echo 'ok: bad arguments are refused'
