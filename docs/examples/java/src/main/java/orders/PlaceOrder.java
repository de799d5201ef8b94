package orders;

import java.sql.Connection;
import java.sql.SQLException;

/**
 * Places an order and asks for its workflow to run, in one transaction: both happen, or neither.
 *
 * <p>{@code DATABASE_URL=postgres://... java -cp 'target/classes:target/libraries/*' orders.PlaceOrder ORDER AMOUNT}
 *
 * <p>Prints the id of the queue item; a repeat prints the same one.
 */
public final class PlaceOrder {

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = Database.open()) {
            System.out.println(
                    placeOrder(connection, Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1])));
        }
    }

    static String placeOrder(Connection connection, int order, int amount) throws SQLException {
        connection.setAutoCommit(false);
        try (var enqueue = connection.prepareStatement(
                        "select stationmaster.enqueue('shop', 'order', input => ?::jsonb, idempotency_key => ?)");
                var insert = connection.prepareStatement(
                        "insert into orders (id, amount) values (?, ?) on conflict (id) do nothing")) {
            // Nobody sees the item before the commit. The key makes a repeat harmless: it gives the first item again.
            enqueue.setString(1, "{\"order\": %d, \"amount\": %d}".formatted(order, amount));
            enqueue.setString(2, "order-" + order);
            String item;
            try (var answer = enqueue.executeQuery()) {
                answer.next();
                item = answer.getString(1);
            }
            insert.setInt(1, order);
            insert.setInt(2, amount);
            // An amount that the table refuses ends the transaction here, and the item is gone with it.
            insert.executeUpdate();
            connection.commit();
            return item;
        } catch (SQLException failure) {
            connection.rollback();
            throw failure;
        }
    }
}
