# Programs in Go that tests and benchmarks run, with libraries that are fetched into the cache. Needs cache.sh.

: "${root:?the script that reads this file sets it}"

# Builds the program in a folder of the repository, and prints its path. On failure prints the reason, in one line.
go_program() ( # FOLDER NAME
  if ! command -v go >/dev/null; then
    echo "no go on this machine"
    exit 1
  fi
  cache=$(cache_dir)/go
  if ! mkdir -p "$cache" || [ ! -w "$cache" ]; then
    echo "cannot write to $cache"
    exit 1
  fi
  # Not another version of Go than the one that is installed; a cache that can be deleted.
  export GOMODCACHE="$cache/modules" GOCACHE="$cache/build" GOTOOLCHAIN=local GOWORK=off GOFLAGS='-mod=readonly -modcacherw -buildvcs=false'
  log=$cache/$2.log
  new=$(mktemp "$cache/$2.XXXXXX")
  trap 'rm -f "$new"' EXIT
  if ! (cd "$root/$1" && timeout 540 go build -o "$new" . </dev/null >"$log" 2>&1); then
    echo "go could not build it: $(grep -v '^go: downloading ' "$log" | tail -n 1 | tail -c 200) (log: $log)"
    exit 1
  fi
  mv -f "$new" "$cache/$2"
  printf '%s\n' "$cache/$2"
)
