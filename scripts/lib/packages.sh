# The Debian packages the project needs, by purpose, and their installation. Debian 12 and 13 have all of them by these names,
# but 13 has no clang 14. "a|b": either suffices; a is installed. Needs say.sh.

packages_for() {
  case $1 in
    build)
      echo 'g++ cmake ninja-build ccache pkg-config
            libpq-dev libsqlite3-dev librdkafka-dev libfmt-dev libspdlog-dev
            nlohmann-json3-dev libtomlplusplus-dev libcli11-dev libexpected-dev
            libcpp-httplib-dev prometheus-cpp-dev libcurl4-openssl-dev libssl-dev libhiredis-dev libprotozero-dev libnats-dev librabbitmq-dev tzdata'
      ;;
    test)
      echo 'libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev libpqxx-dev
            python3 python3-pip python3-aiosmtpd python3-jsonschema python3-yaml zsh fish groff-base mandoc man-db openssl sqlite3 jq
            procps util-linux git ca-certificates debootstrap systemd prometheus'
      packages_for package
      ;;
    package) echo 'dpkg-dev file patchelf' ;;
    servers)
      echo 'postgresql|postgresql-14|postgresql-15|postgresql-16|postgresql-17|postgresql-18
            pgbouncer nghttp2-server kcat ca-certificates'
      for server in kafka redis nats rabbitmq; do packages_for $server; done
      ;;
    kafka) echo 'maven default-jre-headless|openjdk-17-jre-headless openssl ca-certificates' ;;
    redis) echo redis-server ;;
    nats) echo nats-server ;;
    rabbitmq) echo 'rabbitmq-server openssl' ;;
    page)
      # Beside a Node of another origin Debian's npm cannot be installed.
      command -v npm >/dev/null || echo 'nodejs npm'
      ;;
    browser) echo chromium ;;
    languages)
      packages_for page
      echo 'maven default-jdk-headless|openjdk-17-jdk-headless'
      ;;
    lint) echo 'shellcheck python3 git' ;;
    clang) echo 'clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14' ;;
    *) die "no such list of packages: $1" ;;
  esac
}

SYSTEM_RELEASE=/etc/os-release

system_field() { # NAME: what the system says of itself, nothing if it does not
  sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" "$SYSTEM_RELEASE" 2>/dev/null || true
}

# Says so if this is a system that the project is not tested on; ends where nothing can be installed at all.
system_check() {
  case $(system_field ID)-$(system_field VERSION_ID) in debian-12 | debian-13) return 0 ;; esac
  system=$(system_field PRETTY_NAME)
  system=${system:-an unknown system}
  if ! command -v apt-get >/dev/null; then
    die "this is $system, and the packages that are needed can be installed on Debian 12 and 13 only; hint: deploy/Dockerfile \
builds the program anywhere; or install the libraries that docs/guide/getting-started-cpp.md lists, then scripts/build --no-setup"
  fi
  say "packages: this is $system; the project is tested on Debian 12 and 13: elsewhere a package can have another name or a \
version that does not fit"
}

package_installed() (
  status=$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) && [ "$status" = installed ]
)

# Prints the packages of the lists that this machine does not have, one per line.
packages_missing() (
  for list in "$@"; do
    for entry in $(packages_for "$list"); do
      met=no
      for package in $(printf '%s' "$entry" | tr '|' ' '); do
        if package_installed "$package"; then met=yes; fi
      done
      [ $met = yes ] || printf '%s\n' "${entry%%|*}"
    done
  done | sort -u
)

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian starts a server when it is installed, on the default port. The servers of the tests are
# private (scripts/servers), so that is prevented. Servers that were installed before are not changed.
PACKAGES_POLICY=/usr/sbin/policy-rc.d
PACKAGES_NO_CLUSTER=/etc/postgresql-common/createcluster.d/outbox.conf
# Packages with one service, of the same name.
PACKAGES_SERVICES='pgbouncer redis-server nats-server rabbitmq-server prometheus'

packages_hold_back_servers() {
  denied=
  if ! package_installed postgresql-common; then
    denied='postgresql*'
    say "packages: asking postgresql not to create a server of its own ($PACKAGES_NO_CLUSTER)"
    as_root mkdir -p "${PACKAGES_NO_CLUSTER%/*}"
    echo 'create_main_cluster = false' | as_root tee "$PACKAGES_NO_CLUSTER" >/dev/null
  fi
  for service in $PACKAGES_SERVICES; do
    if ! package_installed "$service"; then denied="${denied:+$denied | }$service*"; fi
  done
  # rabbitmq-server brings Erlang and its name server.
  if ! package_installed erlang-base; then denied="${denied:+$denied | }epmd*"; fi
  if [ -z "$denied" ] || [ -e $PACKAGES_POLICY ]; then return 0; fi
  packages_policy_is_ours=yes
  # shellcheck disable=SC2016 # The policy expands its own argument.
  printf '#!/bin/sh\ncase $1 in %s) exit 101 ;; esac\nexit 0\n' "$denied" |
    as_root tee $PACKAGES_POLICY >/dev/null
  as_root chmod 755 $PACKAGES_POLICY
}

packages_let_servers_go() {
  if [ "${packages_policy_is_ours:-no}" = yes ]; then as_root rm -f $PACKAGES_POLICY; fi
}

# Quiet unless it fails.
packages_apt() (
  log=$(mktemp)
  status=0
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 "$@" </dev/null >"$log" 2>&1 || status=$?
  [ $status -eq 0 ] || cat "$log" >&2
  rm -f "$log"
  exit $status
)

listed() { # WORD WORDS
  case " $2 " in *" $1 "*) ;; *) return 1 ;; esac
}

# Installs the missing packages of the lists; returns quickly when none is missing.
packages_install() (
  missing=$(packages_missing "$@" | tr '\n' ' ')
  if [ -z "$missing" ]; then exit 0; fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    say "packages: cannot install, neither root nor sudo; hint: as root: apt-get install $missing"
    exit 1
  fi
  say "packages: installing $missing(this takes a few minutes on a new machine)"
  new_services=
  for service in $PACKAGES_SERVICES; do
    if listed "$service" "$missing"; then new_services="$new_services $service"; fi
  done
  if listed rabbitmq-server "$missing" && ! package_installed erlang-base; then
    new_services="$new_services epmd.socket epmd"
  fi
  if [ -n "$new_services" ] || listed postgresql "$missing"; then
    trap packages_let_servers_go EXIT
    trap 'exit 130' INT TERM HUP
    packages_hold_back_servers
  fi
  if ! packages_apt update; then
    say 'packages: the package index could not be refreshed; trying with the existing one'
  fi
  # shellcheck disable=SC2086 # A list of names.
  if ! packages_apt install --yes --no-install-recommends $missing; then
    say "packages: apt-get could not install $missing"
    exit 1
  fi
  if [ -n "$new_services" ] && [ -d /run/systemd/system ]; then
    # shellcheck disable=SC2086 # A list of names.
    as_root systemctl --quiet disable --now $new_services || true
  fi
)
