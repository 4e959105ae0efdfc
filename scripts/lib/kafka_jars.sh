# A real Kafka: the jars of its release, fetched once by Maven into the cache. Needs maven.sh, cache.sh.

KAFKA_VERSION=4.3.0

kafka_home() {
  printf '%s/kafka-%s\n' "$(cache_dir)" "$KAFKA_VERSION"
}

# kafka-tools has the command-line tools; slf4j-simple makes the broker write a log.
kafka_fetch() {
  maven_fetch "$(kafka_home)" "Kafka $KAFKA_VERSION" "org.apache.kafka:kafka_2.13:$KAFKA_VERSION" "org.apache.kafka:kafka-tools:$KAFKA_VERSION" \
    org.slf4j:slf4j-simple:1.7.36
}
