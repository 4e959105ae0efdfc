#include "sink/nats/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/utf8.hpp"
#include "sink/nats/error_map.hpp"

namespace outbox::sink::nats {
namespace {

/// Whether the subject is a command to the API of JetStream or to the server
/// ($JS.API.STREAM.DELETE.orders), which no event may make. Keys of a bucket are a stream's
/// messages.
bool is_command(std::string_view subject) noexcept {
  return subject.starts_with('$') && !subject.starts_with("$KV.");
}

}  // namespace

std::string_view wrong_subject(std::string_view subject) noexcept {
  if (subject.empty()) return "is empty";
  if (subject.size() > kMostSubjectBytes) return "is longer than 3800 bytes";
  if (!event::is_utf8(subject)) return "is not UTF-8";
  if (subject.find(' ') != std::string_view::npos) return "has a space";
  if (has_control(subject)) return "has a control character";
  if (subject.find_first_of("*>") != std::string_view::npos) return "has a wildcard (* or >)";
  const bool empty_part = subject.front() == '.' || subject.back() == '.' ||
                          subject.find("..") != std::string_view::npos;
  if (empty_part) return "has an empty part (a dot at an end, or two in a row)";
  if (is_command(subject)) return "begins with $, which addresses the server itself";
  return {};
}

std::string_view wrong_header(std::string_view name, std::string_view value) noexcept {
  constexpr std::string_view kCommands = "Nats-";
  const auto legal = [](char c) { return c > ' ' && c < '\x7f' && c != ':'; };
  if (name.empty()) return "has no name";
  if (!std::all_of(name.begin(), name.end(), legal))
    return "has a name with other characters than printable ASCII without space and colon";
  // Nats-Rollup, for instance, would remove the messages of a stream.
  if (equal_ignoring_case(name.substr(0, kCommands.size()), kCommands))
    return "begins with Nats-, which is a command to JetStream";
  // The client takes NUL for the end of a text.
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
    return "has a line break or a NUL, which no header of NATS can hold";
  return {};
}

std::string_view wrong_name(std::string_view name) noexcept {
  if (name.empty()) return "is empty";
  if (name.size() > 255) return "is longer than 255 bytes";
  if (!event::is_utf8(name) || has_control(name) ||
      name.find_first_of(" .*>/\\") != std::string_view::npos)
    return "has a space, a control character, or one of . * > / \\";
  return {};
}

namespace {

tl::unexpected<Error> illegal(std::string message, std::string hint) {
  return fail(Errc::invalid_argument, std::move(message), std::move(hint));
}

Status check_headers(const Message& message) {
  const auto check = [](std::string_view name, std::string_view value) -> Status {
    const std::string_view wrong = wrong_header(name, value);
    if (wrong.empty()) return {};
    return illegal(fmt::format("nats: header {} {}", in_quotes(name), wrong),
                   "change the header where the event is written, or in the subscription");
  };
  for (const HeaderView& header : message.headers) {
    OUTBOX_TRY(check(header.name, header.value));
  }
  return check(kKeyHeader, message.key.value_or(""));
}

bool has_header(const Message& message, std::string_view name) {
  return std::any_of(message.headers.begin(), message.headers.end(), [&](const HeaderView& header) {
    return equal_ignoring_case(header.name, name);
  });
}

class Headers {
 public:
  explicit Headers(natsMsg* message) : message_(message) {}
  void add(std::string_view name, std::string_view value) {
    if (status_ == NATS_OK)
      status_ = natsMsgHeader_Add(message_, std::string(name).c_str(), std::string(value).c_str());
  }
  [[nodiscard]] natsStatus status() const { return status_; }

 private:
  natsMsg* const message_;
  natsStatus status_{NATS_OK};
};

}  // namespace

Result<MessageHandle> make_message(const Message& message, const Envelope& envelope) {
  if (const std::string_view wrong = wrong_subject(message.topic); !wrong.empty()) {
    return illegal(fmt::format("nats: subject {} {}", in_quotes(message.topic), wrong),
                   "see the subscription's topic template; |kebab removes spaces");
  }
  OUTBOX_TRY(check_headers(message));
  if (message.body.size() > std::numeric_limits<int>::max())
    return fail(Errc::too_large, "nats: the event is larger than 2 GiB", "send a smaller event");

  natsMsg* made = nullptr;
  natsStatus status =
      natsMsg_Create(&made, std::string(message.topic).c_str(), envelope.reply.c_str(),
                     message.body.data(), static_cast<int>(message.body.size()));
  MessageHandle owner(made);
  if (status != NATS_OK) return fail(describe(status, "cannot make a message", {}));
  Headers headers(made);
  if (message.event != nullptr)
    headers.add("Nats-Msg-Id", message_id(*message.event, envelope.subscription));
  if (!envelope.stream.empty()) headers.add("Nats-Expected-Stream", envelope.stream);
  if (message.key && !has_header(message, kKeyHeader)) headers.add(kKeyHeader, *message.key);
  for (const HeaderView& header : message.headers) headers.add(header.name, header.value);
  if (headers.status() != NATS_OK)
    return fail(describe(headers.status(), "cannot make a message", {}));
  return owner;
}

}  // namespace outbox::sink::nats
