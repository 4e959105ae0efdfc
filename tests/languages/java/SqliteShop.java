import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.UUID;

/** Run by java_test.py in the folder of shop.db. Prints what it saw, one name and value per line. */
public class SqliteShop {
  private static Connection connection;

  private static UUID insert(String columns, Object... values) throws SQLException {
    UUID id = UUID.randomUUID();
    try (PreparedStatement event = connection.prepareStatement(
        "INSERT INTO outbox_new_event (id" + columns + ") VALUES (?" + ", ?".repeat(values.length) + ")")) {
      event.setString(1, id.toString());
      for (int at = 0; at < values.length; at++) event.setObject(at + 2, values[at]);
      event.executeUpdate();
    }
    return id;
  }

  public static void main(String[] arguments) throws SQLException {
    // [sqlite]
    org.sqlite.SQLiteConfig config = new org.sqlite.SQLiteConfig();
    config.setTransactionMode(org.sqlite.SQLiteConfig.TransactionMode.IMMEDIATE);
    config.setBusyTimeout(5000);
    connection = DriverManager.getConnection("jdbc:sqlite:shop.db", config.toProperties());
    connection.setAutoCommit(false);
    try (Statement order = connection.createStatement()) {
      order.executeUpdate("INSERT INTO orders (id, customer, cents) VALUES (42, 'Zoë 🚀', 1250)");
    }
    UUID placed = UUID.randomUUID();   // the view cannot return the id that it makes
    try (PreparedStatement event = connection.prepareStatement(
        "INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, ?, ?, ?, ?)")) {
      event.setString(1, placed.toString());
      event.setString(2, "order");
      event.setString(3, "42");
      event.setString(4, "OrderPlaced");
      event.setString(5, "{\"customer\": \"Zoë 🚀\", \"cents\": 1250}");
      event.executeUpdate();
    }
    connection.commit();
    // [/sqlite]
    System.out.println("placed\t" + placed);

    String usual = ", aggregate_type, aggregate_id, event_type, payload";
    System.out.println("rolled_back\t" + insert(usual, "order", "41", "OrderPlaced", "{}"));
    connection.rollback();
    System.out.println("bytes\t" + insert(usual + ", content_type", "picture", "7", "Uploaded", new byte[] {0, -1}, "image/png"));
    try {
      insert(usual, "order", "45", " ", "{}");
    } catch (SQLException error) {
      System.out.println("refused\t" + error.getMessage());
    }
    connection.commit();
    connection.close();
  }
}
