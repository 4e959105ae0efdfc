#include "sink/kafka/client.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "sink/kafka/config.hpp"
#include "sink/kafka/error_map.hpp"

namespace outbox::sink::kafka {
namespace {

constexpr std::size_t kLongestTopicName = 249;

rd_kafka_vu_t argument(rd_kafka_vtype_t type) {
  rd_kafka_vu_t value{};
  value.vtype = type;
  return value;
}

// The indices of the arguments of one message; librdkafka identifies them by type.
enum Argument : std::size_t {
  kTopic,
  kPartition,
  kFlags,
  kOpaque,
  kTimestamp,
  kBody,
  kHeaders,
  kKey,
  kArguments
};

std::vector<rd_kafka_vu_t> make_arguments() {
  std::vector<rd_kafka_vu_t> made(kArguments);
  made[kTopic] = argument(RD_KAFKA_VTYPE_RKT);
  made[kPartition] = argument(RD_KAFKA_VTYPE_PARTITION);
  made[kFlags] = argument(RD_KAFKA_VTYPE_MSGFLAGS);
  made[kFlags].u.i = RD_KAFKA_MSG_F_COPY;
  made[kOpaque] = argument(RD_KAFKA_VTYPE_OPAQUE);
  made[kTimestamp] = argument(RD_KAFKA_VTYPE_TIMESTAMP);
  made[kBody] = argument(RD_KAFKA_VTYPE_VALUE);
  made[kHeaders] = argument(RD_KAFKA_VTYPE_HEADERS);
  made[kKey] = argument(RD_KAFKA_VTYPE_KEY);
  return made;
}

/// Lends the text to librdkafka, which only reads it. A null pointer would be a null value (a
/// tombstone), not an empty one.
void set_memory(rd_kafka_vu_t& into, std::string_view text) {
  into.u.mem.ptr = const_cast<char*>(text.empty() ? "" : text.data());
  into.u.mem.size = text.size();
}

rd_kafka_headers_t* make_headers(std::span<const HeaderView> headers) {
  rd_kafka_headers_t* made = rd_kafka_headers_new(headers.size());
  for (const HeaderView& header : headers) {
    rd_kafka_header_add(made, header.name.data(), static_cast<ssize_t>(header.name.size()),
                        header.absent ? nullptr : (header.value.empty() ? "" : header.value.data()),
                        static_cast<ssize_t>(header.value.size()));
  }
  return made;
}

/// How often a topic's partitions are asked for: they may be added later.
constexpr std::chrono::minutes kAskKnownAgain{5};
constexpr std::chrono::seconds kAskUnknownAgain{1};

}  // namespace

bool is_topic_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > kLongestTopicName || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Client::Client(Reports& reports, std::function<void()> bell)
    : reports_(reports), bell_(std::move(bell)), arguments_(make_arguments()) {}

Client::~Client() { silence(); }

void Client::silence() {
  if (queue_) rd_kafka_queue_cb_event_enable(queue_.get(), nullptr, nullptr);
  if (counts_) counts_->silence();
}

Result<std::unique_ptr<Client>> Client::create(const rd_kafka_conf_t& conf, const NewTopics& topics,
                                               Reports& reports, std::function<void()> bell) {
  std::unique_ptr<Client> client(new Client(reports, std::move(bell)));
  client->partitioner_ = read_partitioner(conf);
  Conf copy(rd_kafka_conf_dup(&conf));
  rd_kafka_conf_set_opaque(copy.get(), client.get());
  rd_kafka_conf_set_dr_msg_cb(copy.get(), on_report);
  rd_kafka_conf_set_error_cb(copy.get(), on_error);
  OUTBOX_TRY(client->handle_, make_handle(RD_KAFKA_PRODUCER, std::move(copy), "sink"));
  client->queue_.reset(rd_kafka_queue_get_main(client->handle_.get()));
  rd_kafka_queue_cb_event_enable(client->queue_.get(), on_bell, client.get());
  client->counts_ = std::make_unique<PartitionCounts>(client->handle_.get(), topics, client->bell_);
  return client;
}

Status Client::reach(std::chrono::milliseconds limit) {
  return kafka::reach(handle_.get(), reported_, limit);
}

Client::Topic* Client::topic(std::string_view name) {
  if (last_topic_ != nullptr && name == last_topic_name_) return last_topic_;
  auto found = topics_.find(name);
  if (found == topics_.end()) {
    if (!is_topic_name(name)) return nullptr;
    std::string text(name);
    rd_kafka_topic_t* made = rd_kafka_topic_new(handle_.get(), text.c_str(), nullptr);
    if (made == nullptr) return nullptr;
    Topic entry;
    entry.handle.reset(made);
    entry.unknown_place = places_++;
    found = topics_.emplace(std::move(text), std::move(entry)).first;
  }
  last_topic_name_ = found->first;
  last_topic_ = &found->second;
  return last_topic_;
}

std::optional<Client::Place> Client::place(const Message& message) {
  Topic* to = topic(message.topic);
  if (to == nullptr) return Place{};
  ask_if_due(*to);
  if (to->asking) take_answers();
  if (!to->answered || to->refusal) return std::nullopt;
  if (to->partitions == 0)
    return Place{.partition = RD_KAFKA_PARTITION_UA, .number = to->unknown_place};
  std::int32_t partition = 0;
  if (message.key) {
    const std::string_view key = *message.key;
    partition = partitioner_(to->handle.get(), key.empty() ? "" : key.data(), key.size(),
                             to->partitions, nullptr, nullptr);
  } else {
    partition = to->next = (to->next + 1) % to->partitions;
  }
  return Place{.partition = partition,
               .number = to->first_place + static_cast<std::size_t>(partition)};
}

const TopicRefusal* Client::refusal(std::string_view topic) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() || !found->second.refusal ? nullptr : &*found->second.refusal;
}

void Client::ask_if_due(Topic& topic) {
  if (topic.asking) return;
  const auto pause = topic.partitions > 0 ? std::chrono::seconds(kAskKnownAgain) : kAskUnknownAgain;
  if (topic.answered && std::chrono::steady_clock::now() - *topic.answered <= pause) return;
  topic.asking = true;
  counts_->ask(topic.handle.get());
}

void Client::take_answers() {
  for (auto& answer : counts_->take()) {
    const auto found = topics_.find(std::string_view(rd_kafka_topic_name(answer.topic)));
    if (found == topics_.end()) continue;
    found->second.asking = false;
    found->second.answered = std::chrono::steady_clock::now();
    found->second.refusal = std::move(answer.refusal);
    note_partitions(found->second, answer.partitions);
  }
}

/// Notes the number of partitions; 0 means that there was no answer, and changes nothing.
void Client::note_partitions(Topic& topic, std::int32_t count) {
  if (count <= 0 || count == topic.partitions) return;
  if (topic.partitions > 0) {
    log::warn("kafka: the topic's number of partitions changed, keys move to other partitions",
              {{"topic", rd_kafka_topic_name(topic.handle.get())},
               {"was", topic.partitions},
               {"is", count}});
  }
  topic.partitions = count;
  topic.first_place = places_;
  places_ += static_cast<std::size_t>(count);
}

/// The configured partitioner. All that are possible are pure functions of the key.
Client::Partitioner Client::read_partitioner(const rd_kafka_conf_t& conf) {
  const std::string name = property(conf, "partitioner");
  if (name.starts_with("consistent")) return rd_kafka_msg_partitioner_consistent;
  if (name.starts_with("fnv1a")) return rd_kafka_msg_partitioner_fnv1a;
  return rd_kafka_msg_partitioner_murmur2;
}

rd_kafka_resp_err_t Client::produce(const Message& message, std::int32_t partition,
                                    std::size_t slot, std::int64_t timestamp_ms) {
  const Topic* to = topic(message.topic);
  if (to == nullptr) return RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION;
  arguments_[kTopic].u.rkt = to->handle.get();
  arguments_[kPartition].u.i32 = partition;
  // librdkafka only returns the slot with the report. NOLINTNEXTLINE(performance-no-int-to-ptr)
  arguments_[kOpaque].u.ptr = reinterpret_cast<void*>(slot);
  arguments_[kTimestamp].u.i64 = timestamp_ms;
  set_memory(arguments_[kBody], message.body);
  if (message.tombstone) arguments_[kBody].u.mem.ptr = nullptr;
  rd_kafka_headers_t* headers = make_headers(message.headers);
  arguments_[kHeaders].u.headers = headers;
  set_memory(arguments_[kKey], message.key.value_or(""));
  rd_kafka_error_t* error =
      rd_kafka_produceva(handle_.get(), arguments_.data(), message.key ? kArguments : kKey);
  if (error == nullptr) return RD_KAFKA_RESP_ERR_NO_ERROR;
  const auto code = rd_kafka_error_code(error);
  rd_kafka_error_destroy(error);
  rd_kafka_headers_destroy(headers);
  return code;
}

void Client::poll(std::chrono::milliseconds wait) {
  rd_kafka_poll(handle_.get(), static_cast<int>(wait.count()));
}

void Client::purge_queued() {
  rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

void Client::purge_all() {
  rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                    RD_KAFKA_PURGE_F_NON_BLOCKING);
}

void Client::on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  Reports& reports = static_cast<Client*>(opaque)->reports_;
  const auto slot = reinterpret_cast<std::size_t>(message->_private);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    reports.delivered(slot);
    return;
  }
  const auto status = rd_kafka_message_status(message);
  if (status == RD_KAFKA_MSG_STATUS_PERSISTED) {
    reports.delivered(slot);  // This is a duplicate of a request whose response was lost.
    return;
  }
  reports.failed(slot, message->err, status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED,
                 rd_kafka_topic_name(message->rkt));
}

void Client::on_error(rd_kafka_t* handle, int code, const char* reason, void* opaque) {
  static_cast<Client*>(opaque)->reported_.take(handle, code, reason);
}

void Client::fetch_fatal_error() {
  if (!reported_.text.empty()) return;
  char why[512] = "";
  const rd_kafka_resp_err_t code = rd_kafka_fatal_error(handle_.get(), why, sizeof why);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  reported_ = {.text = why, .code = code};
}

void Client::on_bell(rd_kafka_t*, void* opaque) { static_cast<Client*>(opaque)->bell_(); }

}  // namespace outbox::sink::kafka
