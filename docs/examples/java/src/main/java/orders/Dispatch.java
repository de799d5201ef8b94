package orders;

import java.util.List;

/**
 * The one argument of every workflow that Stationmaster starts.
 *
 * @param executionId the run is called {@code execution-<this>}
 * @param nodeIds of the version's graph, each after those that it waits for
 * @param input what was enqueued
 */
public record Dispatch(
        String executionId,
        String workspaceId,
        String workflowDefinitionId,
        String workflowVersionId,
        List<String> nodeIds,
        Input input) {

    /** Of an order. */
    public record Input(int order, int amount) {}
}
