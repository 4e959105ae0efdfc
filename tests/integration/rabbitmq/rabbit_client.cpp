#include "integration/rabbitmq/rabbit_client.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sink/rabbitmq/librabbitmq.hpp"
#include "support/child_process.hpp"
#include "support/servers.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

constexpr amqp_channel_t kOwnChannel = 1;

std::string text(amqp_bytes_t bytes) {
  return bytes.len == 0 ? "" : std::string(static_cast<const char*>(bytes.bytes), bytes.len);
}

amqp_bytes_t bytes(const std::string& value) {
  return {.len = value.size(), .bytes = const_cast<char*>(value.data())};
}

std::string describe_reply(const amqp_rpc_reply_t& reply) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
    return amqp_error_string2(reply.library_error);
  if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION) return "no answer";
  if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD)
    return text(static_cast<amqp_channel_close_t*>(reply.reply.decoded)->reply_text);
  if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD)
    return text(static_cast<amqp_connection_close_t*>(reply.reply.decoded)->reply_text);
  return "an exception";
}

class Table {
 public:
  explicit Table(const RabbitArguments& arguments) : arguments_(arguments) {
    for (const auto& [name, value] : arguments_) {
      amqp_table_entry_t& entry = entries_.emplace_back();
      entry.key = bytes(name);
      if (value == "true") {
        entry.value.kind = AMQP_FIELD_KIND_BOOLEAN;
        entry.value.value.boolean = 1;
      } else if (value.find_first_not_of("0123456789") == std::string::npos) {
        entry.value.kind = AMQP_FIELD_KIND_I64;
        entry.value.value.i64 = std::stoll(value);
      } else {
        entry.value.kind = AMQP_FIELD_KIND_UTF8;
        entry.value.value.bytes = bytes(value);
      }
    }
  }
  [[nodiscard]] amqp_table_t get() {
    return {.num_entries = static_cast<int>(entries_.size()), .entries = entries_.data()};
  }

 private:
  const RabbitArguments arguments_;
  std::vector<amqp_table_entry_t> entries_;
};

void read_properties(const amqp_basic_properties_t& from, RabbitMessage& into) {
  const std::tuple<const char*, amqp_flags_t, amqp_bytes_t> texts[] = {
      {"content_type", AMQP_BASIC_CONTENT_TYPE_FLAG, from.content_type},
      {"correlation_id", AMQP_BASIC_CORRELATION_ID_FLAG, from.correlation_id},
      {"message_id", AMQP_BASIC_MESSAGE_ID_FLAG, from.message_id},
      {"type", AMQP_BASIC_TYPE_FLAG, from.type},
      {"app_id", AMQP_BASIC_APP_ID_FLAG, from.app_id},
      {"user_id", AMQP_BASIC_USER_ID_FLAG, from.user_id},
      {"expiration", AMQP_BASIC_EXPIRATION_FLAG, from.expiration}};
  for (const auto& [name, flag, value] : texts) {
    if ((from._flags & flag) != 0) into.properties[name] = text(value);
  }
  if ((from._flags & AMQP_BASIC_DELIVERY_MODE_FLAG) != 0)
    into.properties["delivery_mode"] = std::to_string(from.delivery_mode);
  if ((from._flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0)
    into.properties["timestamp"] = std::to_string(from.timestamp);
  if ((from._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return;
  for (int i = 0; i < from.headers.num_entries; ++i) {
    const amqp_table_entry_t& entry = from.headers.entries[i];
    if (entry.value.kind == AMQP_FIELD_KIND_UTF8)
      into.headers[text(entry.key)] = text(entry.value.value.bytes);
    if (entry.value.kind == AMQP_FIELD_KIND_VOID) into.empty_headers.push_back(text(entry.key));
  }
}

void read_content(const amqp_message_t& from, RabbitMessage& into) {
  into.body = text(from.body);
  read_properties(from.properties, into);
}

}  // namespace

std::optional<SharedRabbit> shared_rabbit() {
  const auto url = environment("OUTBOX_TEST_RABBITMQ");
  if (!url) return std::nullopt;
  const auto value = [](const char* name) { return environment(name).value_or(""); };
  return SharedRabbit{.port = std::stoi(url->substr(url->rfind(':') + 1)),
                      .username = "outbox",
                      .password = value("OUTBOX_TEST_RABBITMQ_PASSWORD"),
                      .secure_url = value("OUTBOX_TEST_RABBITMQ_SECURE"),
                      .management = value("OUTBOX_TEST_RABBITMQ_MANAGEMENT"),
                      .tls = value("OUTBOX_TEST_RABBITMQ_TLS")};
}

std::string rabbitmqctl(const std::vector<std::string>& arguments) {
  const TempDir folder;
  const std::string program = environment("OUTBOX_TEST_RABBITMQ_CTL").value_or("");
  std::vector<std::string> command{program, "--quiet"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  ChildProcess process(
      ChildProcess::Options{.command = std::move(command), .output = folder.file("out")});
  const auto status = process.wait(std::chrono::seconds(120));
  std::ifstream file(folder.file("out"));
  std::stringstream out;
  out << file.rdbuf();
  if (status != 0) throw std::runtime_error("rabbitmqctl " + arguments.front() + ": " + out.str());
  return out.str();
}

std::string unique_rabbit_name() {
  static std::atomic<int> number{0};
  return "test." + std::to_string(::getpid()) + "." + std::to_string(++number);
}

// ---- RabbitClient

void RabbitClient::Free::operator()(amqp_connection_state_t_* state) const noexcept {
  (void)amqp_connection_close(state, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(state);
}

RabbitClient::RabbitClient(const SharedRabbit& server) : state_(amqp_new_connection()) {
  amqp_socket_t* const socket = amqp_tcp_socket_new(state_.get());
  if (amqp_socket_open(socket, "127.0.0.1", server.port) != AMQP_STATUS_OK)
    throw std::runtime_error("cannot connect to RabbitMQ");
  const timeval limit{.tv_sec = 30, .tv_usec = 0};
  amqp_set_rpc_timeout(state_.get(), &limit);
  const amqp_rpc_reply_t reply = amqp_login(state_.get(), "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN,
                                            server.username.c_str(), server.password.c_str());
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error(describe_reply(reply));
  open_channel();
}

void RabbitClient::open_channel() {
  amqp_channel_open(state_.get(), kOwnChannel);
  check("channel.open");
}

void RabbitClient::check(const std::string& what) {
  const amqp_rpc_reply_t reply = amqp_get_rpc_reply(state_.get());
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  std::string reason = what + ": " + describe_reply(reply);
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION &&
      reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    amqp_channel_close_ok_t ok{};
    amqp_send_method(state_.get(), kOwnChannel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
    open_channel();
  }
  throw std::runtime_error(reason);
}

void RabbitClient::declare_queue(const std::string& name, const RabbitArguments& arguments,
                                 bool durable) {
  Table table(arguments);
  amqp_queue_declare(state_.get(), kOwnChannel, bytes(name), 0, durable ? 1 : 0, 0, 0, table.get());
  check("queue.declare " + name);
}

void RabbitClient::declare_exchange(const std::string& name, const std::string& type) {
  amqp_exchange_declare(state_.get(), kOwnChannel, bytes(name), bytes(type), 0, 1, 0, 0,
                        amqp_empty_table);
  check("exchange.declare " + name);
}

void RabbitClient::bind(const std::string& queue, const std::string& exchange,
                        const std::string& key) {
  amqp_queue_bind(state_.get(), kOwnChannel, bytes(queue), bytes(exchange), bytes(key),
                  amqp_empty_table);
  check("queue.bind " + queue);
}

void RabbitClient::unbind(const std::string& queue, const std::string& exchange,
                          const std::string& key) {
  amqp_queue_unbind(state_.get(), kOwnChannel, bytes(queue), bytes(exchange), bytes(key),
                    amqp_empty_table);
  check("queue.unbind " + queue);
}

void RabbitClient::delete_queue(const std::string& name) {
  amqp_queue_delete(state_.get(), kOwnChannel, bytes(name), 0, 0);
  check("queue.delete " + name);
}

void RabbitClient::delete_exchange(const std::string& name) {
  amqp_exchange_delete(state_.get(), kOwnChannel, bytes(name), 0);
  check("exchange.delete " + name);
}

void RabbitClient::purge(const std::string& queue) {
  amqp_queue_purge(state_.get(), kOwnChannel, bytes(queue));
  check("queue.purge " + queue);
}

bool RabbitClient::has_queue(const std::string& name) {
  try {
    amqp_queue_declare(state_.get(), kOwnChannel, bytes(name), 1, 0, 0, 0, amqp_empty_table);
    check("queue.declare");
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

bool RabbitClient::has_exchange(const std::string& name) {
  try {
    amqp_exchange_declare(state_.get(), kOwnChannel, bytes(name), bytes("topic"), 1, 0, 0, 0,
                          amqp_empty_table);
    check("exchange.declare");
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void RabbitClient::publish(const std::string& routing_key,
                           const amqp_basic_properties_t_& properties, const std::string& body,
                           const std::string& exchange) {
  if (published_ == 0) {
    amqp_confirm_select(state_.get(), kOwnChannel);
    check("confirm.select");
  }
  const int done = amqp_basic_publish(state_.get(), kOwnChannel, bytes(exchange),
                                      bytes(routing_key), 1, 0, &properties, bytes(body));
  if (done != AMQP_STATUS_OK) throw std::runtime_error(amqp_error_string2(done));
  unconfirmed_.insert(++published_);
}

void RabbitClient::confirm() {
  while (!unconfirmed_.empty()) take_confirmation(std::chrono::seconds(60));
}

void RabbitClient::take_confirmation(std::chrono::seconds limit) {
  amqp_maybe_release_buffers(state_.get());
  const timeval until{.tv_sec = limit.count(), .tv_usec = 0};
  amqp_frame_t frame;
  const int status = amqp_simple_wait_frame_noblock(state_.get(), &frame, &until);
  if (status != AMQP_STATUS_OK) throw std::runtime_error(amqp_error_string2(status));
  if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
    throw std::runtime_error("a message was not confirmed");
  const auto& ack = *static_cast<amqp_basic_ack_t*>(frame.payload.method.decoded);
  if (ack.multiple != 0) {
    unconfirmed_.erase(unconfirmed_.begin(), unconfirmed_.upper_bound(ack.delivery_tag));
  } else {
    unconfirmed_.erase(ack.delivery_tag);
  }
}

/// Takes a first message with basic.get and the rest with a consumer, until the queue is empty. A
/// consumer is much faster, and only basic.get says that the queue is empty.
void RabbitClient::take_all(const std::string& queue, std::vector<RabbitMessage>& into) {
  while (true) {
    amqp_maybe_release_buffers(state_.get());
    const amqp_rpc_reply_t reply = amqp_basic_get(state_.get(), kOwnChannel, bytes(queue), 1);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) check("basic.get " + queue);
    if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return;
    const auto& got = *static_cast<amqp_basic_get_ok_t*>(reply.reply.decoded);
    RabbitMessage& message = into.emplace_back();
    message.exchange = text(got.exchange);
    message.routing_key = text(got.routing_key);
    const std::uint32_t count = got.message_count;  // the messages that are left
    amqp_message_t read;
    const amqp_rpc_reply_t done = amqp_read_message(state_.get(), kOwnChannel, &read, 0);
    if (done.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error(describe_reply(done));
    read_content(read, message);
    amqp_destroy_message(&read);
    consume(queue, count, into);
  }
}

void RabbitClient::consume(const std::string& queue, std::uint32_t count,
                           std::vector<RabbitMessage>& into) {
  if (count == 0) return;
  const std::string tag = "test";
  amqp_basic_consume(state_.get(), kOwnChannel, bytes(queue), bytes(tag), 0, 1, 0,
                     amqp_empty_table);
  check("basic.consume " + queue);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!consume_one(std::chrono::seconds(30), into))
      throw std::runtime_error(queue + ": less came than was there");
  }
  amqp_basic_cancel(state_.get(), kOwnChannel, bytes(tag));
  check("basic.cancel " + queue);
  // These are the messages that the server had sent before it knew of the cancel.
  while (consume_one(std::chrono::seconds(0), into)) {
  }
}

bool RabbitClient::consume_one(std::chrono::seconds limit, std::vector<RabbitMessage>& into) {
  amqp_maybe_release_buffers(state_.get());
  const timeval until{.tv_sec = limit.count(), .tv_usec = 0};
  amqp_envelope_t envelope;
  const amqp_rpc_reply_t reply = amqp_consume_message(state_.get(), &envelope, &until, 0);
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
      reply.library_error == AMQP_STATUS_TIMEOUT)
    return false;
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error(describe_reply(reply));
  RabbitMessage& message = into.emplace_back();
  message.exchange = text(envelope.exchange);
  message.routing_key = text(envelope.routing_key);
  read_content(envelope.message, message);
  amqp_destroy_envelope(&envelope);
  return true;
}

// ---- RabbitQueue

RabbitQueue::RabbitQueue(SharedRabbit server, RabbitArguments arguments)
    : server_(std::move(server)), arguments_(std::move(arguments)), name_(unique_rabbit_name()) {
  create();
}

RabbitQueue::~RabbitQueue() {
  try {
    remove();
  } catch (const std::runtime_error&) {  // a test removed the queue, or its server
  }
}

void RabbitQueue::create() { RabbitClient(server_).declare_queue(name_, arguments_); }
void RabbitQueue::remove() { RabbitClient(server_).delete_queue(name_); }

const std::vector<RabbitMessage>& RabbitQueue::messages() {
  RabbitClient(server_).take_all(name_, messages_);
  return messages_;
}

std::vector<Arrived> RabbitQueue::arrived() {
  std::vector<Arrived> all;
  for (const RabbitMessage& message : messages()) {
    const auto id = message.headers.find("outbox-id");
    const auto key = message.headers.find("outbox-key");
    all.push_back({.id = id == message.headers.end() ? "" : id->second,
                   .key = key == message.headers.end() ? std::nullopt : std::optional(key->second),
                   .body = message.body});
  }
  return all;
}

}  // namespace outbox::test
