#include "source/nats/nats_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "base/text.hpp"
#include "sink/nats/error_map.hpp"
#include "sink/nats/message.hpp"
#include "source/nats/received.hpp"

namespace outbox::source::nats {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using sink::nats::MessageHandle;

constexpr std::chrono::nanoseconds kAckWait = 30s;
/// A new durable consumer has room for the batches of this many members.
constexpr std::size_t kMembers = 20;
/// How long the server keeps a pull request for which there are no messages.
constexpr std::chrono::nanoseconds kRequest = 1s;
/// A request that the server has not ended this long after its time was lost.
constexpr std::chrono::milliseconds kSilence{2000};
/// A request that got nothing is not made again sooner, because the server may refuse it at once.
constexpr std::chrono::milliseconds kPause{20};
/// The server's timer for ack_wait may be this late.
constexpr std::chrono::milliseconds kLate{1000};
/// The longest that the source waits for messages that others have not acknowledged.
constexpr std::chrono::nanoseconds kLongestHold = 2min;
constexpr std::chrono::milliseconds kCloseLimit{500};
/// The limit for a question that can be left unanswered.
constexpr std::chrono::milliseconds kLagLimit{1000};
/// What is assumed of the size of messages before the first one.
constexpr std::size_t kFirstMean = std::size_t{32} << 10U;

constexpr int kNoConsumer = 10014;

template <class Number = std::int64_t>
Number number_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<Number>() : Number{0};
}
std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
Json object_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

std::string make_origin(int code) { return fmt::format("nats:{}", code); }

Error refusal(const sink::nats::Answer& answer, const std::string& about) {
  Error error = sink::nats::judge(answer, about).error;
  error.message = fmt::format("nats: {}: {}", about, answer.text);
  if (answer.err_code == kNoStream) {
    error.code = Errc::not_found;
    error.hint = "create the stream, or correct its name in read; outbox never creates one";
  } else if (answer.err_code == kNoConsumer) {
    error.code = Errc::not_found;
    error.hint = "it was deleted; it is made again when the source is opened";
  } else if (error.remedy == Remedy::fix && error.code == Errc::invalid_argument) {
    error.hint = "check the subject in read, and the limits of the stream and the account";
  }
  return error;
}

std::string_view read_header(natsMsg* message, const char* name) {
  const char* value = nullptr;
  return natsMsgHeader_Get(message, name, &value) == NATS_OK ? value : std::string_view();
}

/// The subject with its wildcards replaced; the other rules are those of any subject.
std::string without_wildcards(std::string_view filter) {
  std::string plain;
  for (std::size_t begin = 0; begin <= filter.size();) {
    const std::size_t end = std::min(filter.find('.', begin), filter.size());
    const std::string_view part = filter.substr(begin, end - begin);
    const bool wild = part == "*" || (part == ">" && end == filter.size());
    plain.append(begin == 0 ? "" : ".").append(wild ? "x" : part);
    begin = end + 1;
  }
  return plain;
}

}  // namespace

Result<Reads> parse_read(const std::string& text) {
  const std::size_t slash = text.find('/');
  Reads reads{.stream = text.substr(0, slash),
              .filter = slash == std::string::npos ? "" : text.substr(slash + 1)};
  if (const auto wrong = sink::nats::wrong_name(reads.stream); !wrong.empty()) {
    return bad_field("read",
                     fmt::format("{} is not the name of a stream: it {}", in_quotes(text), wrong),
                     "STREAM, or STREAM/subject.> for some of its subjects");
  }
  if (slash == std::string::npos || reads.filter == ">") return Reads{.stream = reads.stream};
  if (const auto wrong = sink::nats::wrong_subject(without_wildcards(reads.filter));
      !wrong.empty()) {
    return bad_field("read", fmt::format("{} has no usable subject: it {}", in_quotes(text), wrong),
                     "such as STREAM/orders.*.placed or STREAM/orders.>");
  }
  return reads;
}

NatsSource::NatsSource(sink::nats::NatsSettings settings, std::vector<sink::Endpoint> servers,
                       ConsumerSpec spec, const std::vector<Reads>& reads)
    : settings_(std::move(settings)),
      servers_(std::move(servers)),
      spec_(std::move(spec)),
      durable_(spec_.group.empty() ? spec_.name : spec_.group),
      mean_bytes_(kFirstMean) {
  for (const Reads& one : reads) lanes_.push_back({.reads = one});
}

NatsSource::~NatsSource() { close(); }

// ---- opening and closing

Status NatsSource::open() {
  close();
  OUTBOX_TRY(client_, connector_.connect(settings_, servers_));
  for (Lane& lane : lanes_) OUTBOX_TRY(open_lane(lane));
  warned_ = true;
  return {};
}

Status NatsSource::open_lane(Lane& lane) {
  auto found = find_consumer(lane);
  if (!found && found.error().origin == make_origin(kNoConsumer)) found = make_consumer(lane);
  if (!found) return pass(found);
  const Json config = object_at(*found, "config");
  OUTBOX_TRY(check_consumer(lane, config));
  lane.most_messages = number_at(config, "max_batch");
  lane.longest_request = std::chrono::nanoseconds(number_at(config, "max_expires"));
  lane.ack_wait = std::chrono::nanoseconds(number_at(config, "ack_wait"));
  lane.waiting = lane.seen = false;
  lane.delivered = number_at<std::uint64_t>(object_at(*found, "delivered"), "stream_seq");
  lane.missing = number_at(*found, "num_ack_pending");
  // While it waits it asks for nothing, so a lost connection does not lengthen the time.
  lane.holding = lane.holding && lane.missing > 0 && now_steady() < lane.settled;
  if (!lane.holding) lane.settled = now_steady() + std::min(lane.ack_wait, kLongestHold) + kLate;
  return {};
}

Result<Json> NatsSource::find_consumer(const Lane& lane) {
  return ask(lane, "INFO", "", settings_.deadline);
}

Result<Json> NatsSource::make_consumer(const Lane& lane) {
  Json config{{"durable_name", durable_},
              {"ack_policy", "explicit"},
              {"deliver_policy", spec_.start == ConsumeFrom::earliest ? "all" : "new"},
              {"replay_policy", "instant"},
              {"ack_wait", kAckWait.count()},
              {"max_deliver", -1},
              {"max_ack_pending", kMembers * spec_.batch}};
  if (!lane.reads.filter.empty()) config["filter_subject"] = lane.reads.filter;
  const Json body{{"stream_name", lane.reads.stream}, {"config", std::move(config)}};
  OUTBOX_TRY(Json made, ask(lane, "DURABLE.CREATE", write_json(body), settings_.deadline));
  log::info("the source made a durable consumer",
            {{"consumer", spec_.name}, {"stream", lane.reads.stream}, {"durable", durable_}});
  return made;
}

/// Refuses a consumer that somebody made in a way that would lose messages or read other ones, and
/// warns of what it gives up.
Status NatsSource::check_consumer(const Lane& lane, const Json& config) {
  const auto unusable = [&](const std::string& what, std::string hint) {
    return fail(Errc::unsupported,
                fmt::format("nats: consumer {} of stream {} {}", durable_, lane.reads.stream, what),
                std::move(hint));
  };
  if (!text_at(config, "deliver_subject").empty())
    return unusable("pushes its messages", "delete it, or name another one in group");
  if (const std::string policy = text_at(config, "ack_policy"); policy != "explicit")
    return unusable("has ack_policy = " + policy, "make it with ack_policy = explicit");
  if (config.value("headers_only", false))
    return unusable("delivers headers only", "set its headers_only to false");
  const std::string filter = text_at(config, "filter_subject");
  if (!lane.reads.filter.empty() && filter != lane.reads.filter) {
    return unusable(filter.empty() ? "has no filter" : "has the filter " + filter,
                    "name this filter in read, or another consumer in group");
  }
  if (warned_) return {};
  const auto warn = [&](log::Constant what, std::int64_t value, const char* hint) {
    log::warn(what, {{"consumer", spec_.name},
                     {"stream", lane.reads.stream},
                     {"durable", durable_},
                     {"value", value},
                     {"hint", std::string(hint)}});
  };
  if (const auto most = number_at(config, "max_deliver"); most > 0) {
    warn(
        "the durable consumer has max_deliver: the server gives a message up after this many "
        "deliveries, and it is lost",
        most, "set its max_deliver to -1");
  }
  const auto pending = number_at(config, "max_ack_pending");
  if (pending > 0 && pending < static_cast<std::int64_t>(spec_.batch)) {
    warn("the durable consumer has max_ack_pending below the batch: batches are no larger than it",
         pending, "raise its max_ack_pending, or lower batch");
  }
  return {};
}

std::string NatsSource::api(const Lane& lane, const std::string& verb) const {
  return fmt::format("{}.CONSUMER.{}.{}.{}", sink::nats::api_prefix(settings_), verb,
                     lane.reads.stream, durable_);
}

Result<Json> NatsSource::ask(const Lane& lane, const std::string& verb, const std::string& body,
                             std::chrono::milliseconds limit) {
  OUTBOX_TRY(const std::string reply, client_->ask(api(lane, verb), body, limit));
  const auto about = fmt::format("consumer {} of stream {}", durable_, lane.reads.stream);
  const sink::nats::Answer answer = sink::nats::parse_answer(reply);
  if (answer.kind == sink::nats::Answer::Kind::refused) return fail(refusal(answer, about));
  Json json = try_parse_json<Json>(reply);
  if (json.is_object()) return json;
  return fail(Errc::unsupported, fmt::format("nats: {}: the answer is not one of JetStream", about),
              "check that no other program answers on $JS.API, and nats.domain");
}

/// Gives back what is not acknowledged, in its order, so that the server delivers it at once.
void NatsSource::close() noexcept {
  if (client_ && client_->check()) {
    client_->stop_receiving(kCloseLimit);
    while (const MessageHandle message = client_->next(now_steady())) {
      if (const auto ack = ack_subject(message.get()); !ack.empty()) in_hand_.emplace_back(ack);
    }
    for (const std::string& reply : in_hand_) (void)client_->publish(reply, "", "-NAK");
    (void)client_->flush(kCloseLimit);
  }
  client_.reset();
  in_hand_.clear();
}

// ---- requests

Status NatsSource::request(const Wanted& wanted) {
  // The size of a batch is limited by its mean: with max_bytes in a request, servers up to 2.9
  // deliver redelivered messages out of order.
  const std::size_t by_bytes = std::max<std::size_t>(wanted.bytes / mean_bytes_, 1);
  const std::size_t messages = std::min(wanted.messages, by_bytes);
  for (Lane& lane : lanes_) OUTBOX_TRY(request(lane, messages));
  return {};
}

/// Asks for what is there, or for the first message to come.
Status NatsSource::request(Lane& lane, std::size_t messages) {
  const auto now = now_steady();
  if (lane.missing > 0 && now >= lane.settled) {
    lane.missing = 0;
    lane.holding = false;
  }
  if (lane.waiting || lane.holding) return {};
  if (lane.got == 0 && now < lane.asked + kPause) return {};
  if (lane.missing > 0)
    messages = lane.seen ? std::min(messages, static_cast<std::size_t>(lane.missing)) : 1;
  if (lane.most_messages > 0)
    messages = std::min(messages, static_cast<std::size_t>(lane.most_messages));
  const auto life =
      lane.longest_request > 0ns ? std::min(kRequest, lane.longest_request) : kRequest;
  lane.request = ++last_request_;
  lane.waiting = true;
  lane.wanted = messages;
  lane.got = 0;
  lane.asked = now;
  // The server ends a request with no_wait as soon as it has delivered what there is.
  const Json body{{"batch", messages}, {"expires", life.count()}, {"no_wait", true}};
  return client_->publish(api(lane, "MSG.NEXT"), client_->reply_to(lane.request), write_json(body));
}

/// Whether the rest of a request is on its way.
bool NatsSource::is_delivering() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.waiting && lane.got > 0; });
}

// ---- messages

Status NatsSource::receive(const Wanted& wanted, std::vector<Received>& into) {
  if (!client_) return fail(Errc::cancelled, "nats: the source is not open");
  const auto until = now_steady() + wanted.wait;
  const std::size_t before = into.size();
  std::size_t bytes = 0;
  if (wanted.messages == 0) client_->rest(until);
  while (into.size() - before < wanted.messages && bytes < wanted.bytes) {
    const std::size_t taken = into.size() - before;
    if (taken == 0 && !client_->has_next()) OUTBOX_TRY(request(wanted));
    const bool wait = taken == 0 || is_delivering();
    const MessageHandle message = client_->next(wait ? until : now_steady());
    if (!message) break;
    OUTBOX_TRY(take(message.get(), into));
    if (into.size() - before > taken) bytes += into.back().payload.size();
  }
  OUTBOX_TRY(client_->check());
  return wanted.messages == 0 ? Status() : look_for_silence();
}

Status NatsSource::take(natsMsg* message, std::vector<Received>& into) {
  const std::string_view ack = ack_subject(message);
  if (ack.empty()) return take_status(message);
  OUTBOX_TRY(const Meta meta, read_meta(message));
  const auto lane = std::find_if(lanes_.begin(), lanes_.end(),
                                 [&](const Lane& one) { return one.reads.stream == meta->Stream; });
  if (lane == lanes_.end() || !is_due(*lane, meta->Sequence.Stream)) return {};
  in_hand_.emplace_back(ack);
  into.push_back(make_received(message, *meta));
  mean_bytes_ += into.back().payload.size() / 8 + 16 - mean_bytes_ / 8;
  return {};
}

/// Counts the message, and says whether it may be handed over. One that is not comes again, behind
/// those that are missing, because it was delivered after them.
bool NatsSource::is_due(Lane& lane, std::uint64_t sequence) {
  if (++lane.got >= lane.wanted) lane.waiting = false;
  if (lane.missing == 0) return true;
  if (!lane.holding && sequence <= lane.delivered) {
    lane.seen = true;
    --lane.missing;
    return true;
  }
  if (lane.holding) return false;
  lane.holding = true;
  const auto pause = std::min(lane.ack_wait, kLongestHold) + kLate;
  lane.settled = now_steady() + pause;
  log::info("messages before the next ones are not acknowledged, the consumer waits for them",
            {{"consumer", spec_.name},
             {"stream", lane.reads.stream},
             {"missing", lane.missing},
             {"at_most_s", std::chrono::duration_cast<std::chrono::seconds>(pause).count()}});
  return false;
}

/// Reads how the server has ended a request.
Status NatsSource::take_status(natsMsg* message) {
  const auto number = client_->parse_number(natsMsg_GetSubject(message));
  const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& one) {
    return one.waiting && one.request == number;
  });
  const std::string_view code = read_header(message, "Status");
  if (lane == lanes_.end() || code.empty() || code == "100") return {};
  lane->waiting = false;
  if (code == "404" || code == "408") return {};
  if (code == "503") {
    OUTBOX_TRY(find_consumer(*lane));
    return {};
  }
  const std::string_view text = read_header(message, "Description");
  for (const std::string_view passing :
       {"Leadership Change", "Server Shutdown", "Exceeded MaxWaiting"}) {
    if (equal_ignoring_case(text, passing)) return {};
  }
  const bool deleted = equal_ignoring_case(text, "Consumer Deleted");
  return fail(deleted ? Errc::not_found : Errc::unsupported, Remedy::reconnect,
              fmt::format("nats: consumer {} of stream {}: {}", durable_, lane->reads.stream, text),
              deleted ? "it is made again when the source is opened"
                      : "check the configuration of the durable consumer");
}

/// The server says nothing when a consumer is gone for which a request is made, or when the user
/// may not make it.
Status NatsSource::look_for_silence() {
  for (Lane& lane : lanes_) {
    if (!lane.waiting || now_steady() < lane.asked + kRequest + kSilence) continue;
    lane.waiting = false;
    OUTBOX_TRY(client_->check_rights());
    OUTBOX_TRY(find_consumer(lane));
  }
  return {};
}

Status NatsSource::acknowledge(std::span<const Received> /*messages*/) {
  if (!client_) return fail(Errc::cancelled, "nats: the source is not open");
  for (const std::string& reply : in_hand_) OUTBOX_TRY(client_->publish(reply, "", "+ACK"));
  in_hand_.clear();
  // Otherwise what was acknowledged may come again when the connection breaks now, and hold up what
  // is behind it.
  return client_->flush(settings_.deadline);
}

std::optional<std::int64_t> NatsSource::lag() {
  if (!client_) return std::nullopt;
  std::int64_t lag = 0;
  for (const Lane& lane : lanes_) {
    const auto info = ask(lane, "INFO", "", std::min(settings_.deadline, kLagLimit));
    if (!info) return std::nullopt;
    lag += number_at(*info, "num_pending") + number_at(*info, "num_ack_pending");
  }
  return lag;
}

// ---- the kind

namespace {

/// What a consumer's settings say.
struct Parts {
  sink::nats::NatsSettings settings;
  std::vector<sink::Endpoint> servers;
  std::vector<Reads> reads;
};

Result<Parts> read_parts(const ConsumerSpec& spec) {
  Parts parts;
  OUTBOX_TRY(parts.settings, read_connection(sink::nats::declaration(), spec));
  OUTBOX_TRY(parts.servers, read_valid(sink::nats::parse_servers, parts.settings));
  const bool by_name = spec.group.empty();
  if (const auto wrong = sink::nats::wrong_name(by_name ? spec.name : spec.group); !wrong.empty()) {
    return bad_field(
        by_name ? "name" : "group",
        fmt::format("cannot be the name of a durable consumer of NATS: it {}", wrong),
        by_name ? "set group, which is the durable consumer's name" : "choose another");
  }
  std::set<std::string> streams;
  for (const std::string& text : spec.read) {
    OUTBOX_TRY(parts.reads.emplace_back(), parse_read(text));
    if (!streams.insert(parts.reads.back().stream).second) {
      return bad_field("read", "names stream " + parts.reads.back().stream + " twice",
                       "a durable consumer has one filter: use a consumer for each, or a wildcard");
    }
  }
  return parts;
}

}  // namespace

SourceKind kind() {
  return {.name = "nats",
          .help = "reads streams of NATS JetStream through durable pull consumers",
          .reads = "streams",
          .of_sending = {"stream", "max_in_flight"},
          .make = [](const ConsumerSpec& spec) -> Result<std::unique_ptr<Source>> {
            OUTBOX_TRY(Parts parts, read_parts(spec));
            return std::make_unique<NatsSource>(std::move(parts.settings), std::move(parts.servers),
                                                spec, parts.reads);
          },
          .inspect = [](const ConsumerSpec& spec) -> Result<Inspection> {
            OUTBOX_TRY(const Parts parts, read_parts(spec));
            return inspect(parts.settings, parts.servers, parts.reads);
          }};
}

}  // namespace outbox::source::nats
