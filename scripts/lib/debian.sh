# A small Debian 12 in a folder, to install packages into: as it is in a fresh container. Needs cache.sh.

DEBIAN_RELEASE=bookworm

# Prints why there cannot be one, in one line.
debian_unavailable() {
  if [ "$(id -u)" -ne 0 ]; then
    echo 'a root folder needs root'
  elif ! command -v debootstrap >/dev/null; then
    echo 'no debootstrap on this machine'
  elif ! unshare --mount mount --rbind /proc /proc 2>/dev/null; then
    echo 'this machine lets nobody mount, as in a container'
  elif [ -z "$(debian_sources)" ]; then
    echo "apt on this machine has no source of Debian $DEBIAN_RELEASE"
  else
    return 1
  fi
}

# The sources of this machine, as apt has them: "URI SUITE", one per line.
debian_sources() {
  # shellcheck disable=SC2016 # apt expands it.
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v release=$DEBIAN_RELEASE '($2 == release || index($2, release "-") == 1) && $3 == "main" { print $1, $2 }' | sort -u
}

# Prints a tar file with the minimal system and, downloaded but not installed, the packages given and what they need. Made
# once for these packages, which takes a minute. On failure prints the reason, in one line.
debian_base() ( # PACKAGE...
  cache=$(cache_dir)/debian
  base=$cache/$DEBIAN_RELEASE-$(printf '%s\n' "$@" | sort -u | sha256sum | cut -c 1-16).tar
  if [ -f "$base" ]; then
    printf '%s\n' "$base"
    exit 0
  fi
  if ! mkdir -p "$cache" || ! new=$(mktemp -d "$cache/new.XXXXXX"); then
    echo "cannot write to $cache"
    exit 1
  fi
  trap 'rm -rf --one-file-system "$new"' EXIT
  trap 'exit 130' INT TERM HUP
  chmod 755 "$new"
  if ! debian_fill "$new/root" "$@" >"$new/log" 2>&1; then
    cp "$new/log" "$cache/log"
    echo "could not be made: $(tail -n 1 "$new/log" | tail -c 200) (log: $cache/log)"
    exit 1
  fi
  tar -C "$new/root" --numeric-owner -cf "$new/tar" .
  # Those of earlier lists of packages are of no use any more.
  rm -f "$cache/$DEBIAN_RELEASE"-*.tar
  mv -f "$new/tar" "$base"
  printf '%s\n' "$base"
)

debian_fill() ( # FOLDER PACKAGE...
  set -e
  tree=$1
  shift
  debootstrap --variant=minbase "$DEBIAN_RELEASE" "$tree" "$(debian_sources | awk -v release=$DEBIAN_RELEASE '$2 == release { print $1; exit }')"
  debian_sources | sed 's/\(.*\) \(.*\)/deb \1 \2 main/' >"$tree/etc/apt/sources.list"
  # As in the image for containers: nothing is lost that a new unpacking would not bring back.
  echo force-unsafe-io >"$tree/etc/dpkg/dpkg.cfg.d/fast"
  # How this machine reaches them.
  apt-config dump Acquire >"$tree/etc/apt/apt.conf.d/90machine"
  chroot "$tree" apt-get -qq update
  chroot "$tree" apt-get -qq --yes --no-install-recommends --download-only install "$@"
)
