// Works off jobs that do nothing with River, as `river bench --num-total-jobs` does, and prints one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const perInsert = 5_000

// Nothing is the job of `river bench`.
type Nothing struct {
	Num int `json:"num"`
}

func (Nothing) Kind() string { return "nothing" }

type worker struct {
	river.WorkerDefaults[Nothing]
}

func (worker) Work(context.Context, *river.Job[Nothing]) error { return nil }

// Measured is what is printed.
type Measured struct {
	Jobs          int     `json:"jobs"`
	InsertSeconds float64 `json:"insert_seconds"`
	Seconds       float64 `json:"seconds"`
	JobsPerSecond float64 `json:"jobs_per_second"`
	PeakRSSMiB    float64 `json:"peak_rss_mib"`
}

type options struct {
	schema      string
	jobs        int
	workers     int
	connections int
}

func main() {
	log.SetFlags(0)
	var given options
	flag.StringVar(&given.schema, "schema", "public", "where River's tables are, or are made; its jobs are deleted")
	flag.IntVar(&given.jobs, "jobs", 100_000, "how many")
	flag.IntVar(&given.workers, "workers", 2_000, "how many run at once")
	flag.IntVar(&given.connections, "connections", 10, "to the database, at most")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: DATABASE_URL=postgresql://... river [OPTION...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || given.jobs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	measured, err := run(context.Background(), os.Getenv("DATABASE_URL"), given)
	if err != nil {
		log.Fatal(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(measured)
}

func run(ctx context.Context, url string, given options) (*Measured, error) {
	if url == "" {
		return nil, errors.New("DATABASE_URL is not set")
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(given.connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := makeTables(ctx, pool, given.schema); err != nil {
		return nil, err
	}
	client, err := newClient(pool, given)
	if err != nil {
		return nil, err
	}
	measured := &Measured{Jobs: given.jobs}
	start := time.Now()
	if err := insert(ctx, client, given.jobs); err != nil {
		return nil, err
	}
	measured.InsertSeconds = time.Since(start).Seconds()
	// The planner knows the table, and nothing is left to write: as good as it gets.
	if err := execute(ctx, pool, "ANALYZE "+jobTable(given.schema), "CHECKPOINT"); err != nil {
		return nil, err
	}
	took, err := work(ctx, client, given.jobs)
	if err != nil {
		return nil, err
	}
	measured.Seconds = took.Seconds()
	measured.JobsPerSecond = float64(given.jobs) / took.Seconds()
	if measured.PeakRSSMiB, err = peakRSSMiB(); err != nil {
		return nil, err
	}
	// What is measured next has no vacuum beside it.
	return measured, execute(ctx, pool, "TRUNCATE "+jobTable(given.schema), "CHECKPOINT")
}

func jobTable(schema string) string { return pgx.Identifier{schema, "river_job"}.Sanitize() }

func execute(ctx context.Context, pool *pgxpool.Pool, statements ...string) error {
	for _, statement := range statements {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func makeTables(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet(), Schema: schema})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	return execute(ctx, pool, "TRUNCATE "+jobTable(schema), "VACUUM FULL "+jobTable(schema))
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// The settings of `river bench`.
func newClient(pool *pgxpool.Pool, given options) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            quiet(),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: given.workers}},
		Schema:            given.schema,
		Workers:           workers,
	})
}

func insert(ctx context.Context, client *river.Client[pgx.Tx], jobs int) error {
	for done := 0; done < jobs; {
		batch := make([]river.InsertManyParams, min(perInsert, jobs-done))
		for i := range batch {
			done++
			batch[i].Args = Nothing{Num: done}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// From the start of the client to the last completion: an event comes when the end of its job has been written.
func work(ctx context.Context, client *river.Client[pgx.Tx], jobs int) (time.Duration, error) {
	ended, cancel := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs, // an event that finds no place is lost
		Kinds:    []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled},
	})
	defer cancel()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	for left := jobs; left > 0; left-- {
		event := <-ended
		if event == nil || event.Kind != river.EventKindJobCompleted {
			return 0, errors.New("a job did not complete")
		}
	}
	took := time.Since(start)
	return took, client.Stop(ctx)
}

func peakRSSMiB() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("VmHWM: %w", err)
	}
	return kib / 1024, nil
}
