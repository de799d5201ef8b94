// Receivewakes receives wakes, believes only those of Stationmaster, and acts on each once.
//
//	DATABASE_URL=postgres://... WAKE_SECRETS=whsec_... go run ./receivewakes PORT
//
// WAKE_SECRETS may hold several, separated by spaces: while a secret is exchanged, the new one and the old one.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"stationmaster/orders/webhook"
)

const largest = 1 << 20

type wake struct {
	Message      *string   `json:"message"`
	ScheduledFor time.Time `json:"scheduled_for"`
}

type receiver struct {
	secrets [][]byte
	pool    *pgxpool.Pool
}

func (r *receiver) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, largest))
	if err != nil {
		response.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	id, err := webhook.Verify(r.secrets, request.Header, body)
	if err != nil {
		log.Printf("refused: %v", err)
		response.WriteHeader(http.StatusUnauthorized) // a refusal for good: it is not tried again
		return
	}
	if err := r.act(request.Context(), id, body); err != nil {
		log.Print(err)
		response.WriteHeader(http.StatusServiceUnavailable) // tried again, later and later
		return
	}
	response.WriteHeader(http.StatusNoContent) // only now: what is confirmed is never sent again
}

// The work and the memory of it in one statement: a repeat of the wake changes nothing.
func (r *receiver) act(ctx context.Context, id string, body []byte) error {
	var said wake
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}
	_, err := r.pool.Exec(ctx,
		"insert into reminders (wake_id, message, scheduled_for) values ($1, $2, $3) on conflict (wake_id) do nothing",
		id, said.Message, said.ScheduledFor)
	return err
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: receivewakes PORT")
	}
	receiver := &receiver{}
	for _, secret := range strings.Fields(os.Getenv("WAKE_SECRETS")) {
		key, err := webhook.DecodeSecret(secret)
		if err != nil {
			log.Fatal(err)
		}
		receiver.secrets = append(receiver.secrets, key)
	}
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	receiver.pool = pool
	routes := http.NewServeMux()
	routes.Handle("POST /internal/wake", receiver)
	address := net.JoinHostPort("127.0.0.1", os.Args[1])
	log.Printf("receiving wakes at http://%s/internal/wake", address)
	log.Fatal(http.ListenAndServe(address, routes))
}
