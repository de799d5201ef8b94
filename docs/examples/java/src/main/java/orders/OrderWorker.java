package orders;

import io.temporal.client.WorkflowClient;
import io.temporal.envconfig.ClientConfigProfile;
import io.temporal.serviceclient.WorkflowServiceStubs;
import io.temporal.worker.WorkerFactory;
import java.io.IOException;
import java.util.concurrent.TimeUnit;

/**
 * A Temporal worker that runs the orders that Stationmaster dispatches.
 *
 * <p>{@code java -cp 'target/classes:target/libraries/*' orders.OrderWorker}
 *
 * <p>TEMPORAL_ADDRESS (localhost:7233), TEMPORAL_NAMESPACE (default), TEMPORAL_API_KEY and TEMPORAL_TLS say where Temporal is.
 * SIGTERM and Ctrl-C let what runs come to its end.
 */
public final class OrderWorker {

    public static void main(String[] arguments) throws IOException {
        ClientConfigProfile profile = ClientConfigProfile.load();
        var service = WorkflowServiceStubs.newServiceStubs(profile.toWorkflowServiceStubsOptions());
        var client = WorkflowClient.newInstance(service, profile.toWorkflowClientOptions());
        WorkerFactory factory = WorkerFactory.newInstance(client);
        // The task queue is the --task-queue of the definition.
        var worker = factory.newWorker("orders");
        worker.registerWorkflowImplementationTypes(OrderWorkflow.Implementation.class);
        worker.registerActivitiesImplementations(new Steps.Implementation());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            factory.shutdown();
            factory.awaitTermination(1, TimeUnit.MINUTES);
        }));
        factory.start();
        System.out.println("serving the task queue orders");
    }
}
