# The Python package with which receivers verify signatures of Standard Webhooks: an implementation that is not ours.
# Needs cache.sh.

WEBHOOKS_PACKAGE=standardwebhooks==1.1.0

# Prints the folder for PYTHONPATH; installs it once.
webhooks_package() (
  folder=$(cache_dir)/python/$WEBHOOKS_PACKAGE
  if [ ! -d "$folder" ]; then
    mkdir -p "${folder%/*}"
    new=$(mktemp -d "${folder%/*}/new.XXXXXX")
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --root-user-action=ignore --target "$new" \
      "$WEBHOOKS_PACKAGE" >"$new.log" 2>&1 && mv -T "$new" "$folder" 2>/dev/null
    rm -rf "$new" "$new.log"
  fi
  [ -d "$folder" ] && printf '%s\n' "$folder"
)
