# Debezium's connector for Kafka Connect, fetched once by Maven into the cache. Needs maven.sh, cache.sh.

DEBEZIUM_VERSION=3.4.1.Final

debezium_home() {
  printf '%s/debezium-%s\n' "$(cache_dir)" "$DEBEZIUM_VERSION"
}

debezium_pom() {
  cat <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>outbox</groupId>
  <artifactId>debezium-for-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>io.debezium</groupId>
      <artifactId>debezium-connector-postgres</artifactId>
      <version>$DEBEZIUM_VERSION</version>
    </dependency>
  </dependencies>
</project>
EOF
}

# Prints the folder of plugins for Connect; on failure the reason.
debezium_fetch() {
  maven_fetch "$(debezium_home)" "Debezium $DEBEZIUM_VERSION" debezium_pom && debezium_home
}
