# Schemas of the files in deploy/ that other programs read, fetched once into the cache. Each function prints where they are; on
# failure the reason, in one line. Needs say.sh, cache.sh.

: "${root:?the script that reads this file sets it}"
# shellcheck source=scripts/lib/clients.sh
. "$root/scripts/lib/clients.sh"

SCHEMAS_CHECK_JSONSCHEMA=0.39.0
SCHEMAS_KUBERNETES_VALIDATE=1.37.0
SCHEMAS_OPERATOR=6.0.0

# The file with the schema of the Compose specification, which this package has a copy of.
schema_compose() {
  if ! schemas=$(python_packages check-jsonschema==$SCHEMAS_CHECK_JSONSCHEMA); then
    echo 'pip could not install check-jsonschema'
    return 1
  fi
  printf '%s\n' "$schemas/check_jsonschema/builtin_schemas/vendor/compose-spec.json"
}

# The folder with the schemas of Kubernetes' versions. Of the package only they are used.
schema_kubernetes() {
  if ! schemas=$(python_packages kubernetes-validate==$SCHEMAS_KUBERNETES_VALIDATE); then
    echo 'pip could not install kubernetes-validate'
    return 1
  fi
  printf '%s\n' "$schemas/kubernetes_validate/kubernetes-json-schema"
}

# The folder node_modules with the kinds of Prometheus' operator.
schema_operator() {
  node_packages 240 --ignore-scripts "@kubernetes-models/prometheus-operator@$SCHEMAS_OPERATOR"
}
