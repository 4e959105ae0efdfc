#include "sink/nats/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sink/nats/error_map.hpp"
#include "sink/nats/names.hpp"

namespace outbox::sink::nats {
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
    if (Status legal = check(header.name, header.value); !legal) return legal;
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
  if (Status legal = check_headers(message); !legal) return pass(legal);
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
