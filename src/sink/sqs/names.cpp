#include "sink/sqs/names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "event/utf8.hpp"
#include "sink/message_id.hpp"

namespace outbox::sink::sqs {
namespace {

constexpr std::string_view kFifo = ".fifo";
constexpr std::size_t kMostQueueChars = 80;
constexpr std::size_t kMostAttributeChars = 256;
/// What an id may have besides letters and digits, without '%', which begins an encoded byte.
constexpr std::string_view kPunctuation = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~";

bool has_prefix_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

bool only(std::string_view text, std::string_view plain) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_alnum(c) || plain.find(c) != std::string_view::npos;
  });
}

/// Whether the character is U+FFFE or U+FFFF.
bool is_noncharacter(std::string_view character) {
  return character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf";
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string_view wrong_queue_name(std::string_view name) noexcept {
  if (name.size() > kMostQueueChars) return "is longer than 80 characters";
  if (is_fifo(name)) name.remove_suffix(kFifo.size());
  if (name.empty()) return "is empty";
  if (!only(name, "-_")) return "has characters other than letters, digits, - and _";
  return {};
}

std::string_view wrong_attribute_name(std::string_view name) noexcept {
  if (name.empty()) return "is empty";
  if (name.size() > kMostAttributeChars) return "is longer than 256 characters";
  if (!only(name, "-_.")) return "has characters other than letters, digits, -, _ and .";
  if (name.front() == '.' || name.back() == '.' || name.find("..") != std::string_view::npos)
    return "begins or ends with a dot, or has two of them in a row";
  if (has_prefix_ignoring_case(name, "AWS.") || has_prefix_ignoring_case(name, "Amazon."))
    return "begins with AWS. or Amazon.";
  return {};
}

bool is_fifo(std::string_view queue) noexcept { return queue.ends_with(kFifo); }

bool is_sendable(std::string_view text) noexcept {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const std::size_t size = event::utf8_length(at, end);
    if (size == 0 || is_noncharacter({at, size})) return false;
    const bool control = static_cast<unsigned char>(*at) < 0x20U;
    if (control && *at != '\t' && *at != '\n' && *at != '\r') return false;
    at += size;
  }
  return !text.empty();
}

std::string group_id(std::optional<std::string_view> key, const EventId& id) {
  if (!key) return id.str();
  if (key->empty()) return "%empty";
  std::string encoded = percent_encoded(*key, kPunctuation);
  return encoded.size() <= kMostIdChars ? encoded : "%sha256:" + sha256_digits(*key);
}

std::string deduplication_id(const EventView& event, std::string_view subscription) {
  std::string id = message_id(event, subscription);
  return id.size() <= kMostIdChars ? id : event.id.str() + "." + sha256_digits(id);
}

// W3C Trace Context, 3.2: version-traceid-parentid-flags. X-Ray splits the trace id: 1-, eight
// digits, and the other 24.
std::optional<std::string> trace_header(std::string_view traceparent) {
  constexpr std::size_t kSize = 55;
  if (traceparent.size() != kSize || !traceparent.starts_with("00-") || traceparent[35] != '-' ||
      traceparent[52] != '-')
    return std::nullopt;
  const std::string_view trace = traceparent.substr(3, 32);
  const std::string_view parent = traceparent.substr(36, 16);
  const std::string_view flags = traceparent.substr(53, 2);
  if (!is_hex(trace) || !is_hex(parent) || !is_hex(flags)) return std::nullopt;
  return fmt::format("Root=1-{}-{};Parent={};Sampled={}", trace.substr(0, 8), trace.substr(8),
                     parent, hex_value(flags[1]) & 1);
}

}  // namespace outbox::sink::sqs
