# Messages of the scripts. What a script does goes to standard error, so that standard output
# carries only what was asked for.

say() {
  printf '%s\n' "$*" >&2
}

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}
