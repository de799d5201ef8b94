// A peer beside Stationmaster: River, emptying a queue of jobs that do nothing.
//
// Usage: peer DATABASE_URL JOBS. Prints one line of JSON: jobs, seconds from the first start to the last end on record,
// jobs per second. The client is set up for throughput: many workers, and no pause between two fetches.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	workers     = 2000
	connections = 12
	insertBatch = 10_000
)

type nothing struct {
	N int `json:"n"`
}

func (nothing) Kind() string { return "nothing" }

type doNothing struct {
	river.WorkerDefaults[nothing]
}

func (doNothing) Work(context.Context, *river.Job[nothing]) error { return nil }

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: %s DATABASE_URL JOBS", os.Args[0])
	}
	jobs, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(os.Args[1])
	if err != nil {
		return err
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "truncate river_job"); err != nil {
		return err
	}
	registry := river.NewWorkers()
	river.AddWorker(registry, doNothing{})
	client, err := river.NewClient(driver, &river.Config{
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: 50 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           registry,
	})
	if err != nil {
		return err
	}
	enqueued, err := enqueue(ctx, client, jobs)
	if err != nil {
		return err
	}
	for _, statement := range []string{"vacuum analyze river_job", "checkpoint"} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	if err := wait(ctx, pool); err != nil {
		return err
	}
	if err := client.Stop(ctx); err != nil {
		return err
	}
	var seconds float64
	var done int
	err = pool.QueryRow(ctx, `select count(*), extract(epoch from max(finalized_at) - min(attempted_at))::float8
	                          from river_job where state = 'completed'`).Scan(&done, &seconds)
	if err != nil {
		return err
	}
	if done != jobs {
		return fmt.Errorf("%d of %d jobs were completed", done, jobs)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"jobs":                jobs,
		"seconds":             seconds,
		"per_second":          float64(jobs) / seconds,
		"enqueued_per_second": float64(jobs) / enqueued.Seconds(),
	})
}

// Inserts by COPY, as River recommends for very many.
func enqueue(ctx context.Context, client *river.Client[pgx.Tx], jobs int) (time.Duration, error) {
	began := time.Now()
	for first := 0; first < jobs; first += insertBatch {
		some := min(insertBatch, jobs-first)
		params := make([]river.InsertManyParams, some)
		for i := range params {
			params[i].Args = nothing{N: first + i}
		}
		if _, err := client.InsertManyFast(ctx, params); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// The figures come from the rows, so it is asked rarely.
func wait(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		var left bool
		err := pool.QueryRow(ctx, "select exists (select from river_job where state in ('available', 'running'))").Scan(&left)
		if err != nil {
			return err
		}
		if !left {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
}
