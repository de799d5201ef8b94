// Worker is a Temporal worker that runs the orders that Stationmaster dispatches.
//
//	go run ./worker
//
// TEMPORAL_ADDRESS (localhost:7233), TEMPORAL_NAMESPACE (default), TEMPORAL_API_KEY and TEMPORAL_TLS say where Temporal is.
// SIGTERM and Ctrl-C let what runs come to its end.
package main

import (
	"log"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
)

func main() {
	temporal, err := client.Dial(envconfig.MustLoadDefaultClientOptions())
	if err != nil {
		log.Fatal(err)
	}
	defer temporal.Close()
	// The task queue is the --task-queue of the definition.
	orders := worker.New(temporal, "orders", worker.Options{})
	orders.RegisterWorkflow(Order)
	orders.RegisterActivity(RunStep)
	log.Print("serving the task queue orders")
	if err := orders.Run(worker.InterruptCh()); err != nil {
		log.Fatal(err)
	}
}
