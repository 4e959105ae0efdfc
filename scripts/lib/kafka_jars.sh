# A real Kafka: the jars of its release, fetched once by Maven into the cache. Needs cache.sh.

KAFKA_VERSION=4.3.0

kafka_home() {
  printf '%s/kafka-%s\n' "$(cache_dir)" "$KAFKA_VERSION"
}

# kafka-tools has the command-line tools; slf4j-simple makes the broker write a log.
kafka_pom() {
  cat <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>outbox</groupId>
  <artifactId>kafka-for-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>$KAFKA_VERSION</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>$KAFKA_VERSION</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
EOF
}

# Fetches missing jars. On failure prints the reason, in one line, on standard output.
kafka_fetch() (
  home=$(kafka_home)
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

  say "kafka: fetching Kafka $KAFKA_VERSION with Maven into $home"
  temporary=$(mktemp -d "$cache/fetch.XXXXXX")
  # shellcheck disable=SC2064 # The folder as it is now.
  trap "rm -rf '$temporary'" EXIT
  trap 'exit 130' INT TERM HUP
  kafka_pom >"$temporary/pom.xml"
  log=$cache/fetch.log
  if ! (cd "$temporary" && timeout 900 mvn -B -C \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DoutputDirectory=libs -DincludeScope=runtime </dev/null >"$log" 2>&1 8>&-); then
    # One long line; its end has the cause.
    why=$(sed -n 's/ -> \[Help 1\]$//; s/^\[ERROR\] //p' "$log" | head -n 1 | tail -c 200)
    echo "Maven could not fetch Kafka $KAFKA_VERSION: ${why:-no answer in time} (log: $log)"
    exit 1
  fi
  chmod 755 "$temporary"
  mv -T "$temporary" "$home"
)
