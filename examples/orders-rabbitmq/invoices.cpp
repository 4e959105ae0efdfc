// invoices AMQP_URL QUEUE: writes an invoice into invoices.db for each order that arrives, until it
// is stopped.
//
// A message can arrive twice: when the relay or this program dies before the confirmation. So its
// id, the event's id, is remembered in the transaction that writes the invoice, and the message is
// acknowledged after that. Each order gets one invoice.
#if __has_include(<rabbitmq-c/amqp.h>)  // since version 0.12 of the library
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_tcp_socket.h>
#endif
#include <sqlite3.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

constexpr amqp_channel_t kChannel = 1;

class Invoices {
 public:
  Invoices() {
    if (sqlite3_open("invoices.db", &database_) != SQLITE_OK) fail();
    sqlite3_busy_timeout(database_, 5000);
    run("PRAGMA journal_mode = WAL");
    run("CREATE TABLE IF NOT EXISTS seen (message TEXT PRIMARY KEY)");
    run("CREATE TABLE IF NOT EXISTS invoice (id INTEGER PRIMARY KEY, purchase INTEGER, cents INTEGER, currency TEXT)");
  }
  Invoices(const Invoices&) = delete;
  Invoices& operator=(const Invoices&) = delete;
  ~Invoices() { sqlite3_close(database_); }

  void write(const std::string& message, const nlohmann::json& order) {
    run("BEGIN IMMEDIATE");
    insert("INSERT OR IGNORE INTO seen VALUES (?1)", {message});
    if (sqlite3_changes(database_) == 1) {  // else it was written before
      insert("INSERT INTO invoice (purchase, cents, currency) VALUES (?1, ?2, ?3)",
             {order.at("order").dump(), order.at("cents").dump(), order.at("currency")});
    }
    run("COMMIT");
  }

 private:
  [[noreturn]] void fail() const { throw std::runtime_error(sqlite3_errmsg(database_)); }
  void run(const char* sql) {
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }
  void insert(const char* sql, std::initializer_list<std::string> values) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) fail();
    int index = 0;
    for (const std::string& value : values)
      sqlite3_bind_text(statement, ++index, value.c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_step(statement);
    if (sqlite3_finalize(statement) != SQLITE_OK) fail();
  }

  sqlite3* database_{nullptr};
};

std::string text(amqp_bytes_t bytes) { return {static_cast<const char*>(bytes.bytes), bytes.len}; }

class Queue {
 public:
  Queue(std::string url, const char* name) {
    amqp_connection_info server;
    if (amqp_parse_url(url.data(), &server) != AMQP_STATUS_OK)
      throw std::runtime_error("the URL is not understood");
    amqp_socket_t* const socket = amqp_tcp_socket_new(connection_);
    if (socket == nullptr || amqp_socket_open(socket, server.host, server.port) != AMQP_STATUS_OK)
      throw std::runtime_error("cannot connect");
    check(amqp_login(connection_, server.vhost, 0, AMQP_DEFAULT_FRAME_SIZE, 30,
                     AMQP_SASL_METHOD_PLAIN, server.user, server.password),
          "login");
    amqp_channel_open(connection_, kChannel);
    check(amqp_get_rpc_reply(connection_), "channel");
    amqp_basic_qos(connection_, kChannel, 0, 100, 0);
    amqp_basic_consume(connection_, kChannel, amqp_cstring_bytes(name), amqp_empty_bytes, 0, 0, 0,
                       amqp_empty_table);
    check(amqp_get_rpc_reply(connection_), "consume");
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() { amqp_destroy_connection(connection_); }

  /// Calls `handle` with the id and the body of the next message, then acknowledges it.
  template <class Handle>
  void next(Handle handle) {
    amqp_maybe_release_buffers(connection_);
    amqp_envelope_t envelope;
    check(amqp_consume_message(connection_, &envelope, nullptr, 0), "next message");
    handle(text(envelope.message.properties.message_id), text(envelope.message.body));
    amqp_basic_ack(connection_, kChannel, envelope.delivery_tag, 0);
    amqp_destroy_envelope(&envelope);
  }

 private:
  static void check(const amqp_rpc_reply_t& reply, const char* what) {
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
      throw std::runtime_error(std::string(what) + " failed");
  }

  amqp_connection_state_t connection_{amqp_new_connection()};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    (void)std::fprintf(stderr, "usage: invoices AMQP_URL QUEUE\n");
    return 2;
  }
  try {
    Invoices invoices;
    Queue queue(argv[1], argv[2]);
    while (true) {
      queue.next([&](const std::string& id, const std::string& body) {
        invoices.write(id, nlohmann::json::parse(body));
      });
    }
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "invoices: %s\n", error.what());
    return 1;
  }
}
