# Jars of servers in Java, with all that they depend on, fetched once by Maven into the cache. Needs say.sh, cache.sh.

# maven_pom GROUP:ARTIFACT:VERSION...: prints a project that depends on them.
maven_pom() {
  cat <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>outbox</groupId>
  <artifactId>for-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
EOF
  for dependency; do
    artifact=${dependency#*:}
    echo "    <dependency>"
    echo "      <groupId>${dependency%%:*}</groupId>"
    echo "      <artifactId>${artifact%:*}</artifactId>"
    echo "      <version>${artifact#*:}</version>"
    echo "    </dependency>"
  done
  echo "  </dependencies>"
  echo "</project>"
}

# maven_fetch HOME WHAT GROUP:ARTIFACT:VERSION...: fetches missing jars of WHAT into HOME/libs. On failure prints the reason, in one line, on
# standard output.
maven_fetch() (
  home=$1
  if [ -d "$home/libs" ]; then exit 0; fi
  for tool in java mvn; do
    if ! command -v $tool >/dev/null; then
      echo "no $tool on this machine"
      exit 1
    fi
  done
  cache=$(cache_dir)
  if ! mkdir -p "$cache" || [ ! -w "$cache" ]; then
    echo "cannot write to $cache"
    exit 1
  fi
  exec 8>"$cache/lock"
  flock 8
  if [ -d "$home/libs" ]; then exit 0; fi

  say "maven: fetching $2 into $home"
  temporary=$(mktemp -d "$cache/fetch.XXXXXX")
  # shellcheck disable=SC2064 # The folder as it is now.
  trap "rm -rf '$temporary'" EXIT
  trap 'exit 130' INT TERM HUP
  what=$2
  shift 2
  maven_pom "$@" >"$temporary/pom.xml"
  log=$cache/fetch.log
  if ! (cd "$temporary" && timeout 900 mvn -B -C \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DoutputDirectory=libs -DincludeScope=runtime </dev/null >"$log" 2>&1 8>&-); then
    # One long line; its end has the cause.
    why=$(sed -n 's/ -> \[Help 1\]$//; s/^\[ERROR\] //p' "$log" | head -n 1 | tail -c 200)
    echo "Maven could not fetch $what: ${why:-no answer in time} (log: $log)"
    exit 1
  fi
  chmod 755 "$temporary"
  mv -T "$temporary" "$home"
)
