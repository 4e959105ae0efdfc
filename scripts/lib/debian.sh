# A small Debian in a folder, to install packages into: as it is in a fresh container. Needs cache.sh and packages.sh.

# The release, which a caller may change: this machine's where it is one of those that the project is tested on.
case $(system_field ID)-$(system_field VERSION_CODENAME) in
  debian-trixie) DEBIAN_RELEASE=trixie ;;
  *) DEBIAN_RELEASE=bookworm ;;
esac

# Prints why there cannot be one, in one line.
debian_unavailable() {
  if [ "$(id -u)" -ne 0 ]; then
    echo 'a root folder needs root'
  elif ! command -v debootstrap >/dev/null; then
    echo 'no debootstrap on this machine'
  elif ! unshare --mount mount --rbind /proc /proc 2>/dev/null; then
    echo 'this machine lets nobody mount, as in a container'
  elif [ -z "$(debian_sources)" ]; then
    echo 'apt on this machine has no source of Debian'
  else
    return 1
  fi
}

# The sources of this machine, as apt has them, for that release: "URI SUITE", one per line. All releases are in the same places.
debian_sources() {
  # shellcheck disable=SC2016 # apt expands it.
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v release="$DEBIAN_RELEASE" '
      $1 == "Debian" && $4 == "main" && sub(/^(bookworm|trixie)/, release, $3) { print $2, $3 }' | sort -u
}

# Prints a tar file with the minimal system and, downloaded but not installed, the packages given and what they need. Made
# once for these packages, which takes a minute. On failure prints the reason, in one line.
debian_base() ( # PACKAGE...
  base=$(debian_name base "$@").tar
  if [ ! -f "$base" ]; then
    debian_make "$base" debian_pack "$@" || exit 1
  fi
  printf '%s\n' "$base"
)

# Prints a folder with the minimal system and the packages given, installed. Made once for these packages, which takes two minutes.
# On failure prints the reason, in one line.
debian_tree() ( # PACKAGE...
  tree=$(debian_name tree "$@")
  if [ ! -d "$tree" ]; then
    debian_make "$tree" debian_install "$@" || exit 1
  fi
  printf '%s\n' "$tree"
)

# Runs a command inside such a folder, with folders of this machine bound into it. What it mounts and starts is gone when it ends. The
# folder becomes the root of its mounts, not only of the command (chroot), so that the command can make such roots, too, and enter them.
debian_run() { # FOLDER [--bind FOLDER-OF-THIS-MACHINE FOLDER]... COMMAND...
  # shellcheck disable=SC2016 # The inner shell expands them.
  unshare --mount --pid --fork --kill-child sh -ec '
    mount --bind "$0" "$0"
    mount -t proc proc "$0/proc"
    for folder in sys dev; do mount --rbind "/$folder" "$0/$folder"; done
    while [ "$1" = --bind ]; do
      mkdir -p "$0$3"
      mount --bind "$2" "$0$3"
      shift 3
    done
    cd "$0"
    pivot_root . .
    umount --lazy .
    exec "$@"' "$@"
}

debian_name() { # KIND PACKAGE...
  kind=$1
  shift
  printf '%s/debian/%s-%s-%s' "$(cache_dir)" "$DEBIAN_RELEASE" "$kind" "$(printf '%s\n' "$@" | sort -u | sha256sum | cut -c 1-16)"
}

# Those of earlier lists of packages are of no use any more, and are removed.
debian_make() ( # PATH COMMAND PACKAGE...: the command gets a folder and the packages, and makes FOLDER/made
  path=$1
  command=$2
  shift 2
  cache=${path%/*}
  if ! mkdir -p "$cache" || ! new=$(mktemp -d "$cache/new.XXXXXX"); then
    echo "cannot write to $cache"
    exit 1
  fi
  trap 'rm -rf --one-file-system "$new"' EXIT
  trap 'exit 130' INT TERM HUP
  chmod 755 "$new"
  if ! "$command" "$new" "$@" >"$new/log" 2>&1; then
    cp "$new/log" "$cache/log"
    echo "could not be made: $(tail -n 1 "$new/log" | tail -c 200) (log: $cache/log)"
    exit 1
  fi
  rm -rf --one-file-system "${path%-*}"-*
  mv -fT "$new/made" "$path"
)

debian_pack() ( # FOLDER PACKAGE...
  set -e
  folder=$1
  shift
  debian_minimal "$folder/root"
  chroot "$folder/root" apt-get -qq --yes --no-install-recommends --download-only install "$@"
  tar -C "$folder/root" --numeric-owner -cf "$folder/made" .
)

debian_install() ( # FOLDER PACKAGE...
  set -e
  folder=$1
  shift
  debian_minimal "$folder/made"
  debian_run "$folder/made" env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
    apt-get -qq --yes --no-install-recommends install "$@"
  chroot "$folder/made" apt-get -qq clean
)

debian_minimal() ( # FOLDER
  set -e
  debootstrap --variant=minbase "$DEBIAN_RELEASE" "$1" "$(debian_sources | awk -v release="$DEBIAN_RELEASE" '$2 == release { print $1; exit }')"
  debian_sources | sed 's/\(.*\) \(.*\)/deb \1 \2 main/' >"$1/etc/apt/sources.list"
  # As in the image for containers: nothing is lost that a new unpacking would not bring back.
  echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/fast"
  # How this machine reaches them, and whom it trusts, as behind the proxy of a company.
  apt-config dump Acquire >"$1/etc/apt/apt.conf.d/90machine"
  mkdir -p "$1/usr/local/share/ca-certificates"
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp -L {} "$1/usr/local/share/ca-certificates/" \; || true
  chroot "$1" apt-get -qq update
)
