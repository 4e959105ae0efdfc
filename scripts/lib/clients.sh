# Database clients of other languages, which tests/languages and examples use, fetched once into the cache. Each prints where it is; on
# failure the reason, in one line. Needs say.sh, cache.sh.

: "${root:?the script that reads this file sets it}"
# shellcheck source=scripts/lib/python_packages.sh
. "$root/scripts/lib/python_packages.sh"
# shellcheck source=scripts/lib/go_programs.sh
. "$root/scripts/lib/go_programs.sh"
# shellcheck source=scripts/lib/maven.sh
. "$root/scripts/lib/maven.sh"

CLIENTS_PSYCOPG=3.3.9
CLIENTS_ASYNCPG=0.32.0
CLIENTS_SQLALCHEMY=2.1.9
CLIENTS_DJANGO=5.2.19
CLIENTS_CONFLUENT_KAFKA=2.16.1

# The folder for PYTHONPATH. psycopg finds libpq by itself.
client_psycopg() {
  python_packages psycopg==$CLIENTS_PSYCOPG typing_extensions==4.15.0 || { echo 'pip could not install psycopg' && return 1; }
}
client_asyncpg() {
  python_packages asyncpg==$CLIENTS_ASYNCPG || { echo 'pip could not install asyncpg' && return 1; }
}
client_sqlalchemy() {
  python_packages sqlalchemy==$CLIENTS_SQLALCHEMY typing_extensions==4.15.0 ||
    { echo 'pip could not install SQLAlchemy' && return 1; }
}
client_django() {
  python_packages django==$CLIENTS_DJANGO asgiref==3.13.0 sqlparse==0.6.1 || { echo 'pip could not install Django' && return 1; }
}
# It brings a librdkafka of its own.
client_confluent_kafka() {
  python_packages confluent-kafka==$CLIENTS_CONFLUENT_KAFKA typing_extensions==4.15.0 || { echo 'pip could not install confluent-kafka' && return 1; }
}

# Each prints the folder for NODE_PATH.
CLIENTS_PG=8.23.1
CLIENTS_TYPEORM=1.1.1
CLIENTS_DRIZZLE=0.45.4
client_node() {
  node_packages 240 --ignore-scripts "pg@$CLIENTS_PG typeorm@$CLIENTS_TYPEORM drizzle-orm@$CLIENTS_DRIZZLE"
}
# Its script fetches the compiled part, or compiles it.
CLIENTS_BETTER_SQLITE3=12.11.1
client_node_sqlite() { node_packages 540 --foreground-scripts "better-sqlite3@$CLIENTS_BETTER_SQLITE3"; }

node_packages() ( # SECONDS FLAG PACKAGES
  packages=$3
  for tool in node npm; do
    if ! command -v $tool >/dev/null; then
      echo "no $tool on this machine"
      exit 1
    fi
  done
  folder=$(cache_dir)/node/$(printf '%s' "$packages" | tr ' ' ,)
  if [ ! -d "$folder" ]; then
    if ! mkdir -p "${folder%/*}" || ! new=$(mktemp -d "${folder%/*}/new.XXXXXX"); then
      echo "cannot write to ${folder%/*}"
      exit 1
    fi
    # shellcheck disable=SC2086 # A list of packages.
    timeout "$1" npm install --prefix "$new" "$2" --no-audit --no-fund --no-save $packages </dev/null >"$new.log" 2>&1 &&
      mv -T "$new" "$folder" 2>/dev/null
    rm -rf "$new"
    if [ ! -d "$folder" ]; then
      echo "npm could not fetch $packages: $(sed -n 's/^npm [a-zA-Z!]* //p' "$new.log" | head -n 2 | tr '\n' ' ' | head -c 200)"
      exit 1
    fi
    rm -f "$new.log"
  fi
  printf '%s\n' "$folder/node_modules"
)

# The program of tests/languages/go.
client_go() {
  go_program tests/languages/go languages
}
# Compiles SQLite, which is part of the driver.
client_go_sqlite() {
  go_program tests/languages/go/sqlite languages-sqlite
}

# The folder of the jars.
CLIENTS_JDBC=42.7.8
CLIENTS_SQLITE_JDBC=3.46.1.3
CLIENTS_HIBERNATE=7.4.13.Final

client_java() {
  if ! command -v javac >/dev/null; then
    echo "no javac on this machine"
    return 1
  fi
  jars=$(cache_dir)/java-clients-$CLIENTS_JDBC-$CLIENTS_SQLITE_JDBC-$CLIENTS_HIBERNATE
  maven_fetch "$jars" "JDBC $CLIENTS_JDBC and Hibernate $CLIENTS_HIBERNATE" "org.postgresql:postgresql:$CLIENTS_JDBC" \
    "org.xerial:sqlite-jdbc:$CLIENTS_SQLITE_JDBC" "org.hibernate.orm:hibernate-core:$CLIENTS_HIBERNATE" && printf '%s\n' "$jars/libs"
}
