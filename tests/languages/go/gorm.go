package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// [model]
type Event struct { // rows are only added; the view reads as empty
	ID            uuid.UUID `gorm:"type:uuid;default:null"`
	AggregateType string
	AggregateID   string
	EventType     string
	Payload       json.RawMessage
	Headers       map[string]string `gorm:"serializer:json;default:null"`
	OccurredAt    *time.Time
}

func (Event) TableName() string { return "outbox.new_event" }

// [/model]

func withGorm(url string) {
	db, err := gorm.Open(postgres.Open(url), &gorm.Config{Logger: logger.Discard})
	check(err)
	// [gorm]
	event := Event{AggregateType: "order", AggregateID: "49", EventType: "OrderChanged", Payload: json.RawMessage(`{"by": "gorm"}`)}
	err = db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("UPDATE orders SET cents = cents WHERE id = ?", 42).Error; err != nil { // first the order
			return err
		}
		return tx.Create(&event).Error // event.ID is filled in
	})
	// [/gorm]
	check(err)
	more = append(more, []string{event.ID.String(), "49", "OrderChanged"})

	events := []Event{}
	for number := 0; number < 20; number++ {
		events = append(events, Event{AggregateType: "order", AggregateID: "50", EventType: fmt.Sprintf("Step%02d", number),
			Payload: json.RawMessage("{}"), Headers: map[string]string{"tenant": "a"}})
	}
	check(db.Create(&events).Error)
	for _, made := range events {
		more = append(more, []string{made.ID.String(), "50", made.EventType})
	}

	var refusal *pgconn.PgError
	err = db.Create(&Event{AggregateType: "order", AggregateID: "49", EventType: " ", Payload: json.RawMessage("{}")}).Error
	if !errors.As(err, &refusal) {
		panic(err)
	}
	said["gorm"] = refusal.Message
	sqlDB, err := db.DB()
	check(err)
	check(sqlDB.Close())
}
