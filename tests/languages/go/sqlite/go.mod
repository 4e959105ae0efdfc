module outbox/tests/languages/go/sqlite

go 1.24.0

require (
	github.com/google/uuid v1.6.0
	github.com/mattn/go-sqlite3 v1.14.53
)
