# Messages of the scripts go to standard error, so that standard output has only the results.

say() {
  printf '%s\n' "$*" >&2
}

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}
