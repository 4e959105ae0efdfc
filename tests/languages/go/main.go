// Run by go_test.py with DATABASE_URL. Prints what it saw as one JSON object.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	ctx  = context.Background()
	said = map[string]any{}
	more [][]string // id, key and type of further events
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func place(db *pgx.Conn) {
	var id string
	// [place]
	payload, err := json.Marshal(map[string]any{"customer": "Zoë 🚀", "cents": 1250})
	check(err)
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (id, customer, cents) VALUES ($1, $2, $3)", 42, "Zoë 🚀", 1250); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT outbox.enqueue('order', $1, 'OrderPlaced', $2)", "42", string(payload)).Scan(&id)
	})
	// [/place]
	check(err)
	said["placed"] = id
}

func byView(db *pgx.Conn) {
	var id string
	payload, _ := json.Marshal(map[string]any{"by": "card"})
	// [view]
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE orders SET paid = true WHERE id = $1", 42); err != nil { // first the order, which locks it
			return err
		}
		return tx.QueryRow(ctx, `INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload)
			VALUES ('order', $1, 'OrderPaid', $2) RETURNING id`, "42", string(payload)).Scan(&id)
	})
	// [/view]
	check(err)
	said["paid"] = id
}

func rolledBack(db *pgx.Conn) {
	var id string
	no := errors.New("the business says no")
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0)")
		check(err)
		check(tx.QueryRow(ctx, "SELECT outbox.enqueue('order', 41, 'OrderPlaced', '{}')").Scan(&id))
		return no
	})
	if err != no {
		panic(err)
	}
	said["rolled_back"] = id
}

func many(db *pgx.Conn) {
	// [many]
	type event struct {
		AggregateType string `json:"aggregate_type"`
		AggregateID   string `json:"aggregate_id"`
		EventType     string `json:"event_type"`
		Payload       any    `json:"payload"`
	}
	events, err := json.Marshal([]event{
		{"order", "43", "OrderPlaced", map[string]int{"number": 1}},
		{"order", "43", "OrderPaid", map[string]int{"number": 2}},
		{"order", "44", "OrderPlaced", map[string]int{"number": 3}}})
	check(err)
	rows, err := db.Query(ctx, "SELECT outbox.enqueue_many($1)", string(events))
	check(err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	// [/many]
	check(err)
	said["many"] = ids
}

func picture(db *pgx.Conn) {
	var id string
	picture := make([]byte, 256)
	for at := range picture {
		picture[at] = byte(at)
	}
	// [bytes]
	err := db.QueryRow(ctx, // ::bytea, or the bytes are taken for text
		"SELECT outbox.enqueue('picture', '7', 'Uploaded', $1::bytea, content_type => 'application/octet-stream')", picture).Scan(&id)
	// [/bytes]
	check(err)
	said["bytes"] = id
}

func ownID(db *pgx.Conn) {
	// [own]
	own, err := uuid.NewV7() // github.com/google/uuid
	check(err)
	happened := time.Date(2001, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	headers, err := json.Marshal(map[string]string{"tenant": "a"})
	check(err)
	_, err = db.Exec(ctx, "SELECT outbox.enqueue('order', $1, 'OrderShipped', '{}', headers => $2, id => $3, occurred_at => $4)",
		"42", string(headers), own, happened)
	// [/own]
	check(err)
	said["own"] = own
}

func refused(db *pgx.Conn) {
	var kept string
	var refusal *pgconn.PgError
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT outbox.enqueue('order', '45', 'OrderPlaced', '{}')").Scan(&kept); err != nil {
			return err
		}
		// [refused]
		err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			_, err := savepoint.Exec(ctx, `SELECT outbox.enqueue('order', '45', 'OrderPaid', '{}', headers => '{"a b": "c"}')`)
			return err
		})
		if errors.As(err, &refusal) { // *pgconn.PgError: Code, Message and Hint
			return nil // the transaction goes on
		}
		// [/refused]
		return err
	})
	check(err)
	said["kept"] = kept
	said["refused"] = map[string]string{"sqlstate": refusal.Code, "message": refusal.Message, "hint": refusal.Hint, "text": refusal.Error()}
}

func task(db *pgx.Conn) {
	var id string
	err := db.QueryRow(ctx, "SELECT outbox.enqueue_task('reports', 'report.make', $1, key => $2)",
		`{"month": "2026-10"}`, "customer-42").Scan(&id)
	check(err)
	said["task"] = id
}

// [receive]
func receive(db *pgx.Conn, message string) (first bool) {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT outbox.receive('billing', $1)", message).Scan(&first); err != nil || !first {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE orders SET cents = cents WHERE id = 42") // the effect of the message
		return err
	})
	check(err)
	return first
}
// [/receive]

// A batch and COPY: one round trip for many events.
func inBulk(db *pgx.Conn) {
	batch := &pgx.Batch{}
	for number := 0; number < 20; number++ {
		kind := fmt.Sprintf("Step%02d", number)
		batch.Queue("SELECT outbox.enqueue('order', '46', $1, '{}')", kind).QueryRow(func(row pgx.Row) error {
			var id string
			err := row.Scan(&id)
			more = append(more, []string{id, "46", kind})
			return err
		})
	}
	check(db.SendBatch(ctx, batch).Close())
	// [copy]
	rows := [][]any{}
	for number := 0; number < 20; number++ {
		id, err := uuid.NewV7()
		check(err)
		rows = append(rows, []any{id, "order", "47", fmt.Sprintf("Step%02d", number), `{"by": "copy"}`})
	}
	_, err := db.CopyFrom(ctx, pgx.Identifier{"outbox", "new_event"},
		[]string{"id", "aggregate_type", "aggregate_id", "event_type", "payload"}, pgx.CopyFromRows(rows))
	// [/copy]
	check(err)
	for _, row := range rows {
		more = append(more, []string{row[0].(uuid.UUID).String(), "47", row[3].(string)})
	}
}

// What the page warns of: bytes become text in these modes.
func bytesAsText(db *pgx.Conn) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		var id string
		check(db.QueryRow(ctx, "SELECT outbox.enqueue('order', '51', 'Picture', $1, content_type => 'image/png')", mode,
			[]byte{0, 255}).Scan(&id))
		more = append(more, []string{id, "51", "Picture"})
	}
}

// What the page warns of.
func whatTrips(db *pgx.Conn) {
	said["number"] = db.QueryRow(ctx, "SELECT outbox.enqueue('order', $1, 'OrderPlaced', '{}')", 42).Scan(new(string)).Error()
	_, err := db.Exec(ctx, "SELECT outbox.enqueue('order', '42', 'OrderPlaced', $1, content_type => 'image/png')", []byte{0, 255})
	said["not_text"] = err.Error()
	var id string
	check(db.QueryRow(ctx, "SELECT outbox.enqueue('order', $1::bigint, 'OrderPlaced', '{}')", 48).Scan(&id))
	more = append(more, []string{id, "48", "OrderPlaced"})
}

func main() {
	url := os.Getenv("DATABASE_URL")
	pooler := os.Getenv("POOLER") != ""
	// [pooler]
	config, err := pgx.ParseConfig(url)
	check(err)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // behind PgBouncer before 1.21: no prepared statements
	db, err := pgx.ConnectConfig(ctx, config)
	// [/pooler]
	check(err)
	if !pooler {
		check(db.Close(ctx))
		db, err = pgx.Connect(ctx, url)
		check(err)
	}
	place(db)
	byView(db)
	rolledBack(db)
	many(db)
	picture(db)
	ownID(db)
	refused(db)
	task(db)
	said["received"] = []bool{receive(db, "message-1"), receive(db, "message-1")}
	inBulk(db)
	if pooler {
		bytesAsText(db)
	} else {
		whatTrips(db)
		withGorm(url)
	}
	check(db.Close(ctx))
	said["more"] = more
	check(json.NewEncoder(os.Stdout).Encode(said))
}
