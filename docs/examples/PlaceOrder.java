import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

/**
 * Places an order and asks for its workflow to run, in one transaction: both happen, or neither.
 *
 * <p>{@code java -cp postgresql.jar PlaceOrder.java 'jdbc:postgresql://host/database?user=...&password=...' WORKSPACE WORKFLOW ORDER}
 *
 * <p>Needs PostgreSQL's JDBC driver. Prints the id of the queue item; a repeat prints the same one.
 */
public final class PlaceOrder {

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            System.out.println(placeOrder(connection, arguments[1], arguments[2], Integer.parseInt(arguments[3])));
        }
    }

    static String placeOrder(Connection connection, String workspace, String workflow, int order) throws SQLException {
        connection.setAutoCommit(false);
        try (var table = connection.createStatement()) {
            table.execute("create table if not exists orders (id integer primary key)");
        }
        try (var insert = connection.prepareStatement("insert into orders (id) values (?) on conflict do nothing");
                var enqueue = connection.prepareStatement(
                        "select stationmaster.enqueue_execution(workspace_id => ?::uuid, workflow_definition_id => ?::uuid,"
                                + " input => ?::jsonb, idempotency_key => ?)")) {
            insert.setInt(1, order);
            insert.executeUpdate();
            enqueue.setString(1, workspace);
            enqueue.setString(2, workflow);
            enqueue.setString(3, "{\"order\": " + order + "}");
            enqueue.setString(4, "order-" + order);
            try (var answer = enqueue.executeQuery()) {
                answer.next();
                String item = answer.getString(1);
                connection.commit();
                return item;
            }
        } catch (SQLException failure) {
            connection.rollback();
            throw failure;
        }
    }
}
