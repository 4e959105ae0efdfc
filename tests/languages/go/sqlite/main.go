// Run by go_test.py in the folder of shop.db. Prints what it saw as one JSON object.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/mattn/go-sqlite3"
)

var (
	ctx  = context.Background()
	said = map[string]any{}
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func newID() string {
	id, err := uuid.NewV7()
	check(err)
	return id.String()
}

// [sqlite-transaction]
// Commits if work succeeds.
func inTransaction(db *sql.DB, work func(tx *sql.Tx) error) error {
	tx, err := db.Begin() // BEGIN IMMEDIATE, because of _txlock
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// [/sqlite-transaction]

func place() *sql.DB {
	// [sqlite]
	db, err := sql.Open("sqlite3", "file:shop.db?_txlock=immediate&_busy_timeout=5000")
	check(err)
	placed, err := uuid.NewV7() // the view cannot return the id that it makes
	check(err)
	payload, err := json.Marshal(map[string]any{"customer": "Zoë 🚀", "cents": 1250})
	check(err)
	err = inTransaction(db, func(tx *sql.Tx) error {
		if _, err := tx.Exec("INSERT INTO orders (id, customer, cents) VALUES (?, ?, ?)", 42, "Zoë 🚀", 1250); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, ?, ?, ?, ?)",
			placed.String(), "order", 42, "OrderPlaced", string(payload))
		return err
	})
	// [/sqlite]
	check(err)
	said["placed"] = placed.String()
	return db
}

// Anything with Exec().
type executor interface {
	Exec(query string, args ...any) (sql.Result, error)
}

func insert(to executor, key, kind, payload string) string {
	id := newID()
	_, err := to.Exec("INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, 'order', ?, ?, ?)",
		id, key, kind, payload)
	check(err)
	return id
}

func rolledBack(db *sql.DB) {
	nothing := errors.New("the order is not placed")
	err := inTransaction(db, func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0)")
		check(err)
		said["rolled_back"] = insert(tx, "41", "OrderPlaced", "{}")
		return nothing
	})
	if err != nothing {
		panic(err)
	}
}

func picture(db *sql.DB) {
	picture := make([]byte, 256)
	for at := range picture {
		picture[at] = byte(at)
	}
	id := newID()
	_, err := db.Exec("INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload, content_type)"+
		" VALUES (?, 'picture', '7', 'Uploaded', ?, 'application/octet-stream')", id, picture)
	check(err)
	said["bytes"] = id
}

func own(db *sql.DB) {
	id := newID()
	_, err := db.Exec("INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload, headers, occurred_at)"+
		" VALUES (?, 'order', 42, 'OrderShipped', ?, ?, ?)", id, []byte("{}"), `{"tenant": "a"}`,
		time.Date(2001, 2, 3, 4, 5, 6, 789_000_000, time.UTC))
	check(err)
	said["own"] = id
}

func refused(db *sql.DB) {
	check(inTransaction(db, func(tx *sql.Tx) error {
		said["kept"] = insert(tx, "45", "OrderPlaced", "{}")
		// [sqlite-refused]
		_, err := tx.Exec("INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload, headers)"+
			" VALUES ('order', '45', 'OrderPaid', '{}', ?)", `{"a b": "c"}`)
		var refusal sqlite3.Error
		if errors.As(err, &refusal) && refusal.Code == sqlite3.ErrConstraint {
			said["refused"] = refusal.Error() // the statement failed, the transaction goes on
		}
		// [/sqlite-refused]
		return nil
	}))
}

func many(db *sql.DB) {
	more := [][]string{}
	check(inTransaction(db, func(tx *sql.Tx) error {
		for number := 0; number < 20; number++ {
			kind := fmt.Sprintf("Step%02d", number)
			more = append(more, []string{insert(tx, "46", kind, "{}"), "46", kind})
		}
		return nil
	}))
	said["more"] = more
}

// What one trips over: without _txlock.
func stale(db *sql.DB) {
	plain, err := sql.Open("sqlite3", "file:shop.db?_busy_timeout=5000")
	check(err)
	defer plain.Close()
	said["stale"] = inTransaction(plain, func(tx *sql.Tx) error {
		var count int
		check(tx.QueryRow("SELECT count(*) FROM orders").Scan(&count))
		_, err := db.Exec("UPDATE orders SET cents = cents + 1")
		check(err)
		_, err = tx.Exec("UPDATE orders SET cents = cents + 1")
		return err
	}).Error()
}

func main() {
	db := place()
	defer db.Close()
	said["paid"] = insert(db, "42", "OrderPaid", `{"by": "card"}`)
	rolledBack(db)
	picture(db)
	own(db)
	refused(db)
	many(db)
	stale(db)
	check(json.NewEncoder(os.Stdout).Encode(said))
}
