# Debezium's connector for Kafka Connect, fetched once by Maven into the cache. Needs maven.sh, cache.sh.

DEBEZIUM_VERSION=3.4.1.Final

debezium_home() {
  printf '%s/debezium-%s\n' "$(cache_dir)" "$DEBEZIUM_VERSION"
}

# Prints the folder of plugins for Connect; on failure the reason.
debezium_fetch() {
  maven_fetch "$(debezium_home)" "Debezium $DEBEZIUM_VERSION" "io.debezium:debezium-connector-postgres:$DEBEZIUM_VERSION" && debezium_home
}
