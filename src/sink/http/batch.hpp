// Several events in one request: a JSON array of what each of them is alone. Pure.
#pragma once

#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>

namespace outbox::sink::http {

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

}  // namespace outbox::sink::http
