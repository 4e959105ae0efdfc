#include "http/request_reader.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.hpp"

namespace outbox::http {
namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr int kComplete = 200;

std::optional<std::size_t> parse_length(std::string_view text) {
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return length;
}

/// What the head says about the body. The status is 0 if it can be read.
struct Framing {
  int status{0};
  std::size_t body{0};
};

/// Whether lines end otherwise than with CR LF, or there is a NUL.
bool has_stray_characters(std::string_view head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const bool ends_line = head[i] == '\n' && i > 0 && head[i - 1] == '\r';
    const bool begins_end = head[i] == '\r' && i + 1 < head.size() && head[i + 1] == '\n';
    if (head[i] == '\0' || (head[i] == '\n' && !ends_line) || (head[i] == '\r' && !begins_end))
      return true;
  }
  return false;
}

/// A request whose end is not certain is refused: a proxy in front could see another end and take
/// the rest for a request of somebody else ("request smuggling", RFC 9112, section 11.2).
Framing parse_framing(std::string_view head) {
  if (has_stray_characters(head)) return {.status = 400};
  Framing found;
  bool has_length = false;
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const std::string_view line = head.substr(at, head.find("\r\n", at) - at);
    at += line.size() + 2;
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    // A name must end at its colon; a line that begins with a space continues the one before.
    if (colon == 0 || colon == std::string_view::npos || line.find_first_of(" \t") < colon)
      return {.status = 400};
    const std::string_view name = line.substr(0, colon);
    if (equal_ignoring_case(name, "transfer-encoding")) return {.status = 411};
    if (!equal_ignoring_case(name, "content-length")) continue;
    const auto length = parse_length(trimmed(line.substr(colon + 1)));
    if (!length || has_length) return {.status = 400};
    has_length = true;
    found.body = *length;
  }
  return found;
}

}  // namespace

void RequestReader::feed(std::string_view bytes) {
  bytes_ += bytes;
  judge();
}

void RequestReader::judge() {
  if (status_ != 0) return;
  if (head_ == 0) read_head();
  if (status_ == 0 && head_ > 0 && bytes_.size() >= head_ + body_) status_ = kComplete;
}

void RequestReader::read_head() {
  const std::size_t from = looked_ < kEndOfHead.size() ? 0 : looked_ - kEndOfHead.size();
  const std::size_t end = bytes_.find(kEndOfHead, from);
  looked_ = bytes_.size();
  const std::size_t size = end == std::string::npos ? bytes_.size() : end + kEndOfHead.size();
  if (size > limits_.header_bytes) {
    status_ = 431;
    return;
  }
  if (end == std::string::npos) return;
  head_ = size;
  const Framing framing = parse_framing(std::string_view(bytes_).substr(0, head_));
  status_ = framing.status;
  body_ = framing.body;
  if (status_ == 0 && body_ > limits_.body_bytes) status_ = 413;
}

std::string RequestReader::take() {
  std::string request = bytes_.substr(0, head_ + body_);
  bytes_.erase(0, head_ + body_);
  head_ = body_ = looked_ = 0;
  status_ = 0;
  judge();
  return request;
}

}  // namespace outbox::http
