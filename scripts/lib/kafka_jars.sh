# A real Kafka: the jars of its release, fetched once by Maven into the cache. Needs maven.sh, cache.sh.

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

kafka_fetch() {
  maven_fetch "$(kafka_home)" "Kafka $KAFKA_VERSION" kafka_pom
}
