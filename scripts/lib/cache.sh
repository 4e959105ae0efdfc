# Where downloads are kept between runs, outside the tree.

cache_dir() {
  printf '%s\n' "${OUTBOX_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/outbox}"
}
