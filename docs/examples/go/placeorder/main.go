// Placeorder places an order and asks for its workflow to run, in one transaction: both happen, or neither.
//
//	DATABASE_URL=postgres://... go run ./placeorder ORDER AMOUNT
//
// It prints the id of the queue item; a repeat prints the same one.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5"
)

func placeOrder(ctx context.Context, conn *pgx.Conn, order, amount int) (item string, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Nobody sees the item before the commit. The key makes a repeat harmless: it gives the first item again.
		err := tx.QueryRow(ctx,
			"select stationmaster.enqueue('shop', 'order', input => $1, idempotency_key => $2)::text",
			map[string]int{"order": order, "amount": amount}, fmt.Sprintf("order-%d", order)).Scan(&item)
		if err != nil {
			return err
		}
		// An amount that the table refuses ends the transaction here, and the item is gone with it.
		_, err = tx.Exec(ctx,
			"insert into orders (id, amount) values ($1, $2) on conflict (id) do nothing", order, amount)
		return err
	})
	return item, err
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: placeorder ORDER AMOUNT")
	}
	order, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	amount, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	item, err := placeOrder(ctx, conn, order, amount)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(item)
}
