// Makes requests of messages: where to, which header fields, which body. Pure.
#pragma once

#include <optional>
#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/arena.hpp"
#include "sink/http/config.hpp"

namespace outbox::sink::http {

// ---- Which headers of a message can be sent as header fields of HTTP. Pure.

/// Headers that this sink sets itself, so that no message may set them.
struct OwnHeaders {
  bool authorization{false};
  bool idempotency_key{false};
};

/// Why the message must be refused because of this header; nullopt if it can be sent. A value may
/// have any bytes but control characters: others than ASCII are sent as they are (RFC 9110, 5.5).
[[nodiscard]] std::optional<std::string> find_fault(const HeaderView& header,
                                                    const OwnHeaders& own);

/// "name: value", as libcurl expects it; "name;" if the value is empty.
[[nodiscard]] std::string header_line(std::string_view name, std::string_view value);

// ---- Several events in one request: a JSON array of their single bodies. Pure.

/// An event in a request.
struct BatchedEvent {
  Token token{0};
  std::string id;
  std::string body;
};

/// The id of a request with these events, for webhook-id. A single event has its own id. Several
/// have a digest of all ids, so that a receiver that drops duplicates drops exactly these.
[[nodiscard]] std::string request_id(std::span<const BatchedEvent> parts);

/// "[first,second]", in the order of the parts.
[[nodiscard]] std::string join_array(std::span<const BatchedEvent> parts);

/// The content type of an array of such bodies; empty if they are not JSON and thus not in arrays.
[[nodiscard]] std::string_view array_type(std::string_view content_type);

// ---- requests

struct Request {
  std::string url;
  std::vector<BatchedEvent> parts{};
  bool is_array{false};
  std::vector<std::string> headers{};  ///< "name: value", without the headers of stamp().
};

class Composer {
 public:
  explicit Composer(const HttpOptions& options);

  /// The request for the first message, and for as many after it as fit into it; not empty. An
  /// error is the fault of the first message, and then no other was looked at.
  [[nodiscard]] Result<Request> compose(std::span<const Message> messages);
  /// The header fields of one sending: id, time and signature of the body.
  [[nodiscard]] std::vector<std::string> stamp(const Request& request, std::string_view body,
                                               std::int64_t timestamp) const;

 private:
  [[nodiscard]] Result<Request> single(const Message& message);
  [[nodiscard]] Result<Request> array(std::span<const Message> messages);
  void add_own(std::vector<std::string>& lines) const;

  const HttpOptions& options_;
  const OwnHeaders own_;
  event::Arena arena_;
};

/// Two requests with half of the parts each.
[[nodiscard]] std::pair<Request, Request> halves(Request whole);

}  // namespace outbox::sink::http
