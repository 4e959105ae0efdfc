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

/// What this sink sets itself, so that no message may.
struct OwnHeaders {
  bool authorization{false};
  bool idempotency_key{false};
};

/// Why the message must be refused because of this header; none: it can be sent. Values may have any bytes but control characters: what
/// is not ASCII goes as it is (obs-text, RFC 9110, 5.5).
[[nodiscard]] std::optional<std::string> fault_of(const HeaderView& header, const OwnHeaders& own);

/// "name: value", as libcurl wants it; "name;" when the value is empty.
[[nodiscard]] std::string header_line(std::string_view name, std::string_view value);

// ---- Several events in one request: a JSON array of what each of them is alone. Pure.

/// An event in a request.
struct Part {
  Token token{0};
  std::string id;
  std::string body;
};

/// The id of a request with these events, for webhook-id: of a single one its own. Of several a digest of all their ids, so that a receiver
/// that drops what it has seen drops the request only if it has seen exactly these.
[[nodiscard]] std::string request_id(std::span<const Part> parts);

/// "[first,second]", in their order.
[[nodiscard]] std::string array_of(std::span<const Part> parts);

/// The content type of an array of such bodies. Empty: they are not JSON and cannot be in one.
[[nodiscard]] std::string_view array_type(std::string_view content_type);

// ---- requests

struct Request {
  std::string url;
  std::vector<Part> parts{};
  bool is_array{false};
  std::vector<std::string> headers{};  ///< "name: value", less those of each sending.
};

class Composer {
 public:
  explicit Composer(const HttpOptions& options);

  /// The request for the first of the messages, and as many after it as fit into the same one. An error is the fault of the first one,
  /// which is then the only one that was looked at. Not empty.
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

/// Two requests with a half of the parts each.
[[nodiscard]] std::pair<Request, Request> halves(Request whole);

}  // namespace outbox::sink::http
