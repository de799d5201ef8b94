package orders;

import java.net.URI;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

/** The application's database, which is also Stationmaster's. */
final class Database {

    /** Opens what DATABASE_URL names, {@code postgres://user:password@host:port/database}. JDBC wants the parts one by one. */
    static Connection open() throws SQLException {
        URI url = URI.create(System.getenv("DATABASE_URL"));
        String[] account = url.getUserInfo().split(":", 2);
        String place = "jdbc:postgresql://" + url.getHost() + ":" + url.getPort() + url.getPath();
        return DriverManager.getConnection(place, account[0], account[1]);
    }

    private Database() {}
}
