package orders;

import io.temporal.activity.ActivityOptions;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The workflow that Stationmaster starts. */
@WorkflowInterface
public interface OrderWorkflow {

    /** What is returned becomes the output of the execution. */
    record Output(int order, List<String> done) {}

    /** The name is the --workflow-type of the definition; without it, it would be that of the interface. */
    @WorkflowMethod(name = "Order")
    Output run(Dispatch dispatch);

    /** Walks the nodes of the graph. */
    final class Implementation implements OrderWorkflow {

        private final Steps steps = Workflow.newActivityStub(
                Steps.class,
                ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofMinutes(1)).build());

        @Override
        public Output run(Dispatch dispatch) {
            var done = new ArrayList<String>();
            for (String node : dispatch.nodeIds()) {
                done.add(steps.runStep(node, dispatch.input()));
            }
            return new Output(dispatch.input().order(), done);
        }
    }
}
