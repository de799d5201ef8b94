package orders;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.stream.Stream;

/**
 * Receives wakes, believes only those of Stationmaster, and acts on each once.
 *
 * <p>{@code DATABASE_URL=postgres://... WAKE_SECRETS=whsec_... java -cp 'target/classes:target/libraries/*' orders.ReceiveWakes PORT}
 *
 * <p>WAKE_SECRETS may hold several, separated by spaces: while a secret is exchanged, the new one and the old one.
 */
public final class ReceiveWakes {

    private static final int LARGEST = 1024 * 1024;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<byte[]> SECRETS =
            Stream.of(System.getenv("WAKE_SECRETS").split(" ")).map(Webhook::decodeSecret).toList();

    public static void main(String[] arguments) throws IOException {
        int port = Integer.parseInt(arguments[0]);
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.createContext("/internal/wake", exchange -> {
            try (exchange) {
                exchange.sendResponseHeaders(receive(exchange), -1);
            }
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
        System.out.println("receiving wakes at http://127.0.0.1:" + port + "/internal/wake");
    }

    private static int receive(HttpExchange exchange) throws IOException {
        if (!exchange.getRequestMethod().equals("POST")) {
            return 405;
        }
        byte[] body = exchange.getRequestBody().readNBytes(LARGEST + 1);
        if (body.length > LARGEST) {
            return 413;
        }
        String id;
        try {
            id = Webhook.verify(SECRETS, exchange.getRequestHeaders()::getFirst, body);
        } catch (Webhook.Untrusted why) {
            System.err.println("refused: " + why.getMessage());
            return 401; // a refusal for good: it is not tried again
        }
        try {
            act(id, JSON.readTree(body));
        } catch (SQLException failure) {
            System.err.println(failure.getMessage());
            return 503; // tried again, later and later
        }
        return 204; // only now: what is confirmed is never sent again
    }

    /** The work and the memory of it in one statement: a repeat of the wake changes nothing. */
    private static void act(String id, JsonNode wake) throws SQLException {
        try (var connection = Database.open();
                var insert = connection.prepareStatement(
                        "insert into reminders (wake_id, message, scheduled_for) values (?, ?, ?)"
                                + " on conflict (wake_id) do nothing")) {
            insert.setString(1, id);
            insert.setString(2, wake.path("message").textValue());
            insert.setObject(3, OffsetDateTime.parse(wake.path("scheduled_for").asText()));
            insert.executeUpdate();
        }
    }

    private ReceiveWakes() {}
}
