package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Dispatch is the one argument of every workflow that Stationmaster starts; Input is what was enqueued.
type Dispatch[Input any] struct {
	ExecutionID          string   `json:"executionId"` // the run is called execution-<this>
	WorkspaceID          string   `json:"workspaceId"`
	WorkflowDefinitionID string   `json:"workflowDefinitionId"`
	WorkflowVersionID    string   `json:"workflowVersionId"`
	NodeIDs              []string `json:"nodeIds"` // of the version's graph, each after those that it waits for
	Input                Input    `json:"input"`
}

type OrderInput struct {
	Order  int `json:"order"`
	Amount int `json:"amount"`
}

// OrderOutput becomes the output of the execution.
type OrderOutput struct {
	Order int      `json:"order"`
	Done  []string `json:"done"`
}

// Order walks the nodes of the graph. Its name is the --workflow-type of the definition.
func Order(ctx workflow.Context, dispatch Dispatch[OrderInput]) (OrderOutput, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	output := OrderOutput{Order: dispatch.Input.Order}
	for _, node := range dispatch.NodeIDs {
		var done string
		if err := workflow.ExecuteActivity(ctx, RunStep, node, dispatch.Input).Get(ctx, &done); err != nil {
			return OrderOutput{}, err
		}
		output.Done = append(output.Done, done)
	}
	return output, nil
}

// RunStep does the work of one node. Temporal repeats it until it succeeds, so it must bear being repeated.
func RunStep(_ context.Context, node string, input OrderInput) (string, error) {
	switch node {
	case "charge":
		return fmt.Sprintf("charged %d", input.Amount), nil
	case "ship":
		return fmt.Sprintf("shipped order %d", input.Order), nil
	}
	// A repeat would not help. Any other error is tried again for ever, and the execution keeps its slot meanwhile.
	return "", temporal.NewNonRetryableApplicationError("there is no step "+node, "UnknownStep", nil)
}
