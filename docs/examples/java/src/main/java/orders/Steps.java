package orders;

import io.temporal.activity.ActivityInterface;
import io.temporal.failure.ApplicationFailure;

/** The work itself. */
@ActivityInterface
public interface Steps {

    /** Does the work of one node. Temporal repeats it until it succeeds, so it must bear being repeated. */
    String runStep(String node, Dispatch.Input input);

    /** What the nodes do. */
    final class Implementation implements Steps {

        @Override
        public String runStep(String node, Dispatch.Input input) {
            return switch (node) {
                case "charge" -> "charged " + input.amount();
                case "ship" -> "shipped order " + input.order();
                // A repeat would not help. Any other exception is tried again for ever, and the execution keeps its slot
                // meanwhile.
                default -> throw ApplicationFailure.newNonRetryableFailure("there is no step " + node, "UnknownStep");
            };
        }
    }
}
