# Where downloads are kept between runs, outside the repository.

cache_dir() {
  printf '%s\n' "${OUTBOX_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/outbox}"
}
