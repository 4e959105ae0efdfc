#include "sink/kafka/error_map.hpp"

#include <string>

namespace outbox::sink::kafka {
namespace {

struct Meaning {
  rd_kafka_resp_err_t code;
  Fault fault;
  Errc errc;
  Remedy remedy;
  const char* hint;
};

using enum Fault;
using enum Remedy;

constexpr const char* kCreateTopic =
    "create the topic on the brokers, or let this sink do it: create = { partitions = 6, replication = 3 }";
constexpr const char* kMakeTopic = "check create.partitions and create.replication of this sink";
constexpr const char* kTooLarge =
    "the event is larger than the topic's max.message.bytes (or the broker's message.max.bytes) allows; raise it there and "
    "set message.max.bytes of this sink as high";
constexpr const char* kBadRecord =
    "the topic refuses the record; a compacted topic needs a key on each record";
constexpr const char* kRightToWrite =
    "give the user of this sink the right to write to the topic (ACL: Write, Describe; Create, if it makes topics)";
constexpr const char* kLogin =
    "check username, password and sasl_mechanism of this sink (or librdkafka's sasl.*); at Kafka 4, SCRAM needs librdkafka 2.6.1";
constexpr const char* kTls =
    "check tls_ca of this sink, that brokers names a port with TLS, and the names in the brokers' certificates";
constexpr const char* kReplicas =
    "fewer replicas are in sync than the topic's min.insync.replicas: check the brokers";
constexpr const char* kReach =
    "check kafka.brokers, that tls is as their ports want it, the network, and that the brokers run";
constexpr const char* kVersion =
    "the brokers are too old for this sink, or refuse its compression.type";

constexpr Meaning kMeanings[] = {
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, message, Errc::too_large, fix, kTooLarge},
    {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, message, Errc::too_large, fix, kTooLarge},
    // The batch was damaged on the way (Kafka's CORRUPT_MESSAGE), which a retry repairs.
    {RD_KAFKA_RESP_ERR_INVALID_MSG, destination, Errc::unavailable, retry_call,
     "the broker received a damaged batch; check the network"},
    {RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, message, Errc::invalid_argument, fix, kBadRecord},
    {RD_KAFKA_RESP_ERR_INVALID_RECORD, message, Errc::invalid_argument, fix, kBadRecord},
    // The timestamp comes from this machine's clock and is the same for every event.
    {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, destination, Errc::invalid_argument, fix,
     "check the clock of this machine against the brokers', and the topic's message.timestamp settings"},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, destination, Errc::unsupported, fix,
     kVersion},

    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, destination, Errc::not_found, fix, kCreateTopic},
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, destination, Errc::not_found, fix, kCreateTopic},
    {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, destination, Errc::not_found, fix, kCreateTopic},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, destination, Errc::invalid_argument, fix,
     "check the subscription's topic"},
    {RD_KAFKA_RESP_ERR_INVALID_PARTITIONS, destination, Errc::invalid_argument, fix, kMakeTopic},
    {RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, destination, Errc::invalid_argument, fix,
     "there are fewer brokers than create.replication of this sink says"},
    {RD_KAFKA_RESP_ERR_INVALID_CONFIG, destination, Errc::invalid_argument, fix, kMakeTopic},
    {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, destination, Errc::permission_denied, fix,
     "a policy of the brokers forbids it"},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, destination, Errc::permission_denied, fix,
     kRightToWrite},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, destination, Errc::permission_denied, fix,
     kRightToWrite},
    {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, destination, Errc::permission_denied, fix,
     kLogin},
    {RD_KAFKA_RESP_ERR__AUTHENTICATION, destination, Errc::permission_denied, fix, kLogin},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, destination, Errc::permission_denied, fix,
     kLogin},
    {RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE, destination, Errc::permission_denied, fix, kLogin},
    {RD_KAFKA_RESP_ERR__SSL, destination, Errc::permission_denied, fix, kTls},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, destination, Errc::unsupported, fix, kVersion},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, destination, Errc::unsupported, fix, kVersion},
    {RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, destination, Errc::unsupported, fix, kVersion},
    {RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, destination, Errc::unsupported, fix, kVersion},

    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, destination, Errc::unavailable, retry_call, kReplicas},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, destination, Errc::unavailable, retry_call,
     kReplicas},
    {RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, destination, Errc::unavailable, retry_call,
     "check the broker's disk"},
    {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR__TRANSPORT, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR__RESOLVE, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR__TIMED_OUT, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, destination, Errc::unavailable, retry_call,
     kReach},
    {RD_KAFKA_RESP_ERR_NOT_CONTROLLER, destination, Errc::unavailable, retry_call, kReach},
    {RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, destination, Errc::unavailable, retry_call, kReach},
};

const Meaning* find_meaning(rd_kafka_resp_err_t code) noexcept {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.code == code) return &meaning;
  }
  return nullptr;
}

}  // namespace

Fault find_fault(rd_kafka_resp_err_t code) noexcept {
  const Meaning* meaning = find_meaning(code);
  return meaning == nullptr ? none : meaning->fault;
}

bool is_about_size(rd_kafka_resp_err_t code) noexcept {
  return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
         code == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE ||
         code == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE;
}

bool is_missing(rd_kafka_resp_err_t code) noexcept {
  return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
         code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
}

Error describe(rd_kafka_resp_err_t code, std::string_view topic) {
  const Meaning* meaning = find_meaning(code);
  Error error{.code = meaning == nullptr ? Errc::unavailable : meaning->errc,
              .remedy = meaning == nullptr ? reconnect : meaning->remedy,
              .effect = Effect::none,
              .message = "kafka: ",
              .hint = meaning == nullptr ? "" : meaning->hint,
              .origin = "kafka:" + std::to_string(static_cast<int>(code))};
  if (!topic.empty()) error.message.append("topic ").append(topic).append(": ");
  error.message += rd_kafka_err2str(code);
  return error;
}

}  // namespace outbox::sink::kafka
