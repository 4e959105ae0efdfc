// Runs tasks of one queue with asynq until so many have run, and prints each as a line of JSON; then what asynq's Inspector
// says of the queues and of those tasks.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

// Ran is a task as its handler sees it.
type Ran struct {
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Queue    string            `json:"queue"`
	Payload  []byte            `json:"payload"` // in base64
	Headers  map[string]string `json:"headers"`
	MaxRetry int               `json:"max_retry"`
}

// Kept is a task as the Inspector sees it after it has run.
type Kept struct {
	ID        string `json:"kept"`
	State     string `json:"state"`
	Timeout   int    `json:"timeout"`
	Retention int    `json:"retention"`
}

// Queues are the names that the Inspector lists.
type Queues struct {
	Names []string `json:"queues"`
}

func main() {
	address := flag.String("redis", "", "HOST:PORT")
	queue := flag.String("queue", "default", "whose tasks it runs")
	count := flag.Int("count", 1, "after how many tasks it ends")
	flag.Parse()
	redis := asynq.RedisClientOpt{Addr: *address}

	ran := make(chan Ran)
	ended := make(chan struct{})
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency:       4,
		Queues:            map[string]int{*queue: 1},
		TaskCheckInterval: 50 * time.Millisecond,
		LogLevel:          asynq.FatalLevel,
	})
	var once sync.Once
	stop := func() { once.Do(func() { close(ended) }) }
	if err := server.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		name, _ := asynq.GetQueueName(ctx)
		most, _ := asynq.GetMaxRetry(ctx)
		select {
		case ran <- Ran{id, task.Type(), name, task.Payload(), task.Headers(), most}:
		case <-ended:
		}
		return nil
	})); err != nil {
		log.Fatal(err)
	}

	lines := json.NewEncoder(os.Stdout)
	var ids []string
	for len(ids) < *count {
		task := <-ran
		ids = append(ids, task.ID)
		_ = lines.Encode(task)
	}
	stop()
	server.Shutdown() // waits for handlers, so that their tasks are completed

	inspector := asynq.NewInspector(redis)
	defer inspector.Close()
	names, err := inspector.Queues()
	if err != nil {
		log.Fatal(err)
	}
	_ = lines.Encode(Queues{names})
	for _, id := range ids {
		task, err := inspector.GetTaskInfo(*queue, id)
		if err != nil {
			log.Fatal(err)
		}
		_ = lines.Encode(Kept{id, task.State.String(), int(task.Timeout.Seconds()), int(task.Retention.Seconds())})
	}
}
