# The console's page, of the sources in console/, which the build puts into the program. Needs say.sh.

: "${root:?the script that reads this file sets it}"

# Prints why this machine cannot build the page; nothing if it can.
page_obstacle() {
  for tool in node npm; do
    command -v $tool >/dev/null || { echo "there is no $tool on this machine" && return 0; }
  done
  major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)
  [ "$major" -ge 18 ] || echo "this machine has Node.js $major, and 18 is needed"
}

# One line that changes with any of the files that the page is made of.
page_sources() (
  cd "$root/console" || exit 1
  find . -type f ! -path './node_modules/*' ! -path './dist/*' ! -path './build/*' ! -path './tests/*' -exec sha256sum {} + | LC_ALL=C sort -k 2 | sha256sum
)

# Builds the page into console/dist, unless it is there and made of the same files. Fails if it cannot; the program is then built without
# a page, or with an older one.
page_build() (
  [ -f "$root/console/package.json" ] || exit 0
  why=$(page_obstacle)
  if [ -n "$why" ]; then
    say "build: the console will have no page: $why; its API works"
    exit 1
  fi
  sources=$(page_sources)
  mark=$root/console/dist/.made-of
  if [ "$(cat "$mark" 2>/dev/null)" = "$sources" ] && [ -d "$root/console/node_modules" ]; then exit 0; fi
  say "build: building the console's page"
  log=$(mktemp)
  if ! (cd "$root/console" && timeout 300 npm ci --no-audit --no-fund && npm run build) </dev/null >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    say "build: npm could not build the console's page; the console's API works without it"
    exit 1
  fi
  rm -f "$log"
  printf '%s\n' "$sources" >"$mark"
)
