import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.ColumnTransformer;
import org.hibernate.annotations.Immutable;
import org.hibernate.annotations.UuidGenerator;
import org.hibernate.cfg.Configuration;

/** Run by java_test.py with JDBC_URL. Prints what it saw, one name and value per line. */
public class HibernateShop {
  @Entity
  @Table(name = "orders")
  public static class Order {
    @Id long id;
    String customer;
    long cents;
    boolean paid;
  }

  // [entity]
  @Entity
  @Immutable   // rows are only added; the view reads as empty
  @Table(schema = "outbox", name = "new_event")
  public static class Event {
    @Id @UuidGenerator(style = UuidGenerator.Style.VERSION_7) UUID id;
    @Column(name = "aggregate_type") String aggregateType;
    @Column(name = "aggregate_id") String aggregateId;
    @Column(name = "event_type") String eventType;
    @ColumnTransformer(write = "cast(? as jsonb)") String payload;
    @ColumnTransformer(write = "cast(? as jsonb)") String headers = "{}";
    @Column(name = "occurred_at") OffsetDateTime occurredAt;
  }
  // [/entity]

  private static Event event(String key, String type, String payload) {
    Event event = new Event();
    event.aggregateType = "order";
    event.aggregateId = key;
    event.eventType = type;
    event.payload = payload;
    return event;
  }

  private static void said(String name, Object value) {
    System.out.println(name + "\t" + value);
  }

  private static void placeAndPay(SessionFactory factory) {
    said("placed", factory.fromTransaction(session -> {
      Order order = new Order();
      order.id = 42;
      order.customer = "Zoë 🚀";
      order.cents = 1250;
      session.persist(order);
      session.flush();
      // [native]
      UUID id = session.createNativeQuery("SELECT outbox.enqueue('order', :id, 'OrderPlaced', cast(:payload AS text))", UUID.class)
          .setParameter("id", 42L).setParameter("payload", "{\"customer\": \"Zoë 🚀\", \"cents\": 1250}").getSingleResult();
      // [/native]
      return id;
    }));
    // [persist]
    UUID paid = factory.fromTransaction(session -> {
      Order order = session.find(Order.class, 42L);
      order.paid = true;
      session.flush();   // first the order: without it Hibernate writes the event before it
      Event event = event("42", "OrderPaid", "{\"by\": \"card\"}");   // sets the fields
      session.persist(event);
      return event.id;
    });
    // [/persist]
    said("paid", paid);
  }

  /** The statements of a transaction that changes the order and then persists the event, without a flush between. */
  private static void whatTrips(SessionFactory factory, List<String> statements) {
    factory.inTransaction(session -> {
      Order order = session.find(Order.class, 42L);
      order.cents = order.cents + 1;
      Event event = event("49", "OrderChanged", "{}");
      session.persist(event);
      statements.clear();
      session.flush();
      order.cents = order.cents - 1;
      said("more", event.id + " 49 OrderChanged");
      for (String statement : statements) said("without_flush", String.join(" ", List.of(statement.split("\\s+")).subList(0, 2)));
    });
  }

  public static void main(String[] arguments) {
    List<String> statements = new ArrayList<>();
    SessionFactory factory = new Configuration().addAnnotatedClass(Order.class).addAnnotatedClass(Event.class)
        .setProperty("hibernate.connection.url", System.getenv("JDBC_URL"))
        .setProperty("hibernate.jdbc.batch_size", "20")
        .setStatementInspector(statement -> { statements.add(statement); return statement; })
        .buildSessionFactory();
    placeAndPay(factory);
    try (var session = factory.openSession()) {
      var transaction = session.beginTransaction();
      Event event = event("41", "OrderPlaced", "{}");
      session.persist(event);
      session.flush();
      said("rolled_back", event.id);
      transaction.rollback();
    }
    factory.inTransaction(session -> {
      Event event = event("42", "OrderShipped", "{}");
      event.headers = "{\"tenant\": \"a\"}";
      event.occurredAt = OffsetDateTime.parse("2001-02-03T04:05:06.789Z");
      session.persist(event);
      said("own", event.id);
    });
    factory.inTransaction(session -> {   // a JDBC batch
      for (int number = 0; number < 20; number++) {
        Event event = event("46", "Step%02d".formatted(number), "{}");
        session.persist(event);
        said("more", event.id + " 46 " + event.eventType);
      }
    });
    whatTrips(factory, statements);
    try {
      factory.inTransaction(session -> session.persist(event("45", " ", "{}")));
    } catch (jakarta.persistence.PersistenceException error) {
      Throwable cause = error;
      while (!(cause instanceof org.postgresql.util.PSQLException)) cause = cause.getCause();
      said("class", error.getClass().getName());
      said("refused", ((org.postgresql.util.PSQLException) cause).getServerErrorMessage().getMessage());
    }
    factory.close();
  }
}
