import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.OffsetDateTime;
import java.util.UUID;

/** Run by java_test.py with JDBC_URL. Prints what it saw, one name and value per line. */
public class JdbcShop {
  private static Connection connection;

  private static void said(String name, Object value) {
    System.out.println(name + "\t" + value);
  }

  // [uuid7]
  private static final SecureRandom RANDOM = new SecureRandom();

  static UUID uuid7() {
    ByteBuffer bytes = ByteBuffer.allocate(16);
    RANDOM.nextBytes(bytes.array());
    return new UUID(System.currentTimeMillis() << 16 | 0x7000 | bytes.getLong() & 0xfff,
                    bytes.getLong() >>> 2 | 1L << 63);
  }
  // [/uuid7]

  private static UUID place() throws SQLException {
    UUID placed;
    // [place]
    connection.setAutoCommit(false);
    try (PreparedStatement order = connection.prepareStatement("INSERT INTO orders (id, customer, cents) VALUES (?, ?, ?)");
         PreparedStatement event = connection.prepareStatement("SELECT outbox.enqueue('order', ?, 'OrderPlaced', ?)")) {
      order.setLong(1, 42);
      order.setString(2, "Zoë 🚀");
      order.setLong(3, 1250);
      order.executeUpdate();
      event.setLong(1, 42);
      event.setString(2, "{\"customer\": \"Zoë 🚀\", \"cents\": 1250}");
      try (ResultSet row = event.executeQuery()) {   // not executeUpdate(): a function returns a row
        row.next();
        placed = row.getObject(1, UUID.class);
      }
      connection.commit();
    } catch (SQLException error) {
      connection.rollback();
      throw error;
    }
    // [/place]
    return placed;
  }

  private static UUID byView() throws SQLException {
    // [view]
    try (PreparedStatement order = connection.prepareStatement("UPDATE orders SET paid = true WHERE id = ?");
         PreparedStatement event = connection.prepareStatement(
             "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload)"
             + " VALUES ('order', ?, 'OrderPaid', ?::jsonb)", new String[] {"id"})) {
      order.setLong(1, 42);
      order.executeUpdate();   // first the order, which locks it
      event.setString(1, "42");
      event.setString(2, "{\"by\": \"card\"}");
      event.executeUpdate();
      ResultSet keys = event.getGeneratedKeys();
      keys.next();
      UUID paid = keys.getObject("id", UUID.class);
      connection.commit();
      return paid;
    }
    // [/view]
  }

  private static Object query(String statement, Object... values) throws SQLException {
    try (PreparedStatement prepared = connection.prepareStatement(statement)) {
      for (int at = 0; at < values.length; at++) prepared.setObject(at + 1, values[at]);
      try (ResultSet row = prepared.executeQuery()) {
        StringBuilder all = new StringBuilder();
        while (row.next()) all.append(all.length() == 0 ? "" : " ").append(row.getString(1));
        return all;
      }
    }
  }

  private static void rolledBack() throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0)");
    }
    said("rolled_back", query("SELECT outbox.enqueue('order', 41, 'OrderPlaced', '{}')"));
    connection.rollback();
  }

  private static void many() throws SQLException {
    String events = """
        [{"aggregate_type": "order", "aggregate_id": "43", "event_type": "OrderPlaced", "payload": {"number": 1}},
         {"aggregate_type": "order", "aggregate_id": "43", "event_type": "OrderPaid", "payload": {"number": 2}},
         {"aggregate_type": "order", "aggregate_id": "44", "event_type": "OrderPlaced", "payload": {"number": 3}}]""";
    said("many", query("SELECT outbox.enqueue_many(?)", events));   // your function that prepares, sets and executes
    connection.commit();
  }

  private static void picture() throws SQLException {
    byte[] picture = new byte[256];
    for (int at = 0; at < picture.length; at++) picture[at] = (byte) at;
    // [bytes]
    String statement = "SELECT outbox.enqueue('picture', 7, 'Uploaded', ?, content_type => 'application/octet-stream')";
    try (PreparedStatement event = connection.prepareStatement(statement)) {
      event.setBytes(1, picture);
      // [/bytes]
      ResultSet row = event.executeQuery();
      row.next();
      said("bytes", row.getString(1));
    }
    connection.commit();
  }

  private static void ownId() throws SQLException {
    // [own]
    UUID own = uuid7();
    try (PreparedStatement event = connection.prepareStatement(
        "SELECT outbox.enqueue('order', ?, 'OrderShipped', '{}', headers => ?::jsonb, id => ?, occurred_at => ?)")) {
      event.setLong(1, 42);
      event.setString(2, "{\"tenant\": \"a\"}");   // ::jsonb, because setString() says varchar
      event.setObject(3, own);
      event.setObject(4, OffsetDateTime.parse("2001-02-03T04:05:06.789Z"));
      event.executeQuery();
    }
    // [/own]
    connection.commit();
    said("own", own);
  }

  private static void refused() throws SQLException {
    said("kept", query("SELECT outbox.enqueue('order', 45, 'OrderPlaced', '{}')"));
    // [refused]
    Savepoint before = connection.setSavepoint();
    try (PreparedStatement event = connection.prepareStatement(
        "SELECT outbox.enqueue('order', 45, 'OrderPaid', '{}', headers => ?::jsonb)")) {
      event.setString(1, "{\"a b\": \"c\"}");
      event.executeQuery();
    } catch (org.postgresql.util.PSQLException error) {
      said("sqlstate", error.getSQLState());
      said("message", error.getServerErrorMessage().getMessage());
      said("hint", error.getServerErrorMessage().getHint());
      connection.rollback(before);
      // [/refused]
      said("text", error.getMessage().lines().findFirst().get());
    }
    connection.commit();
  }

  private static void task() throws SQLException {
    try (PreparedStatement task = connection.prepareStatement("SELECT outbox.enqueue_task('reports', 'report.make', ?, key => ?)")) {
      task.setString(1, "{\"month\": \"2026-10\"}");
      task.setString(2, "customer-42");
      ResultSet row = task.executeQuery();
      row.next();
      said("task", row.getString(1));
    }
    connection.commit();
  }

  // [receive]
  private static boolean receive(String message) throws SQLException {
    try (PreparedStatement received = connection.prepareStatement("SELECT outbox.receive('billing', ?)")) {
      received.setString(1, message);
      ResultSet row = received.executeQuery();
      row.next();
      boolean first = row.getBoolean(1);
      if (first) applyEffect();
      connection.commit();
      return first;
    }
  }
  // [/receive]

  private static void applyEffect() throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("UPDATE orders SET cents = cents WHERE id = 42");
    }
  }

  private static void batch() throws SQLException {
    // [batch]
    try (PreparedStatement event = connection.prepareStatement(
        "INSERT INTO outbox.new_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, 'order', ?, ?, ?::jsonb)")) {
      for (int number = 0; number < 20; number++) {
        UUID id = uuid7();
        event.setObject(1, id);
        event.setString(2, "46");
        event.setString(3, "Step%02d".formatted(number));
        event.setString(4, "{}");
        event.addBatch();
        said("more", id + " 46 Step%02d".formatted(number));
      }
      event.executeBatch();   // one INSERT of many rows with reWriteBatchedInserts=true
    }
    // [/batch]
    connection.commit();
  }

  /** What the page warns of. */
  private static void whatTrips() throws SQLException {
    Object[][] tries = {
        {"headers", "SELECT outbox.enqueue('order', 46, 'OrderPlaced', '{}', headers => ?)", "{}"},
        {"view", "INSERT INTO outbox.new_event (aggregate_type, event_type, payload) VALUES ('order', 'OrderPlaced', ?) RETURNING id", "{}"}};
    for (Object[] one : tries) {
      try {
        query((String) one[1], one[2]);
      } catch (SQLException error) {
        said((String) one[0], error.getMessage().lines().findFirst().get());
      }
      connection.rollback();
    }
    try (PreparedStatement event = connection.prepareStatement("SELECT outbox.enqueue('order', 46, 'OrderPlaced', '{}')")) {
      event.executeUpdate();
    } catch (SQLException error) {
      said("update", error.getMessage());
    }
    connection.rollback();
    for (int number = 0; number < 12; number++) {   // from the fifth on a prepared statement of the server
      said("more", query("SELECT outbox.enqueue('order', ?, ?, '{}')", 47L, "Step%02d".formatted(number)) + " 47 Step%02d".formatted(number));
    }
    connection.commit();
  }

  public static void main(String[] arguments) throws SQLException {
    String url = System.getenv("JDBC_URL");
    if (System.getenv("POOLER") != null) {
      // [pooler]
      url += "&prepareThreshold=0";   // behind PgBouncer before 1.21: no prepared statements
      // [/pooler]
    }
    connection = DriverManager.getConnection(url);
    said("placed", place());
    said("paid", byView());
    rolledBack();
    many();
    picture();
    ownId();
    refused();
    task();
    said("received", receive("message-1"));
    said("received", receive("message-1"));
    batch();
    whatTrips();
    connection.close();
  }
}
