// What SQS allows in names, ids and texts, and the URLs of queues.
#pragma once

#include <cstddef>
#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

namespace outbox::sink::sqs {

// ---- What SQS allows in names, ids and texts (Amazon SQS API Reference: SendMessageBatch,
// CreateQueue; Developer Guide: message metadata). Pure.

inline constexpr std::size_t kMostAttributes = 10;
/// The limit of a MessageGroupId and a MessageDeduplicationId.
inline constexpr std::size_t kMostIdChars = 128;

/// What is wrong with the name ("is empty"); empty if it is valid.
[[nodiscard]] std::string_view wrong_queue_name(std::string_view name) noexcept;
[[nodiscard]] std::string_view wrong_attribute_name(std::string_view name) noexcept;

/// Whether the queue's name or URL is that of a FIFO queue.
[[nodiscard]] bool is_fifo(std::string_view queue) noexcept;

/// Whether a body or an attribute's value may be this text: it is not empty, is UTF-8, and has only
/// characters of XML 1.0.
[[nodiscard]] bool is_sendable(std::string_view text) noexcept;

/// The MessageGroupId of a key; different keys have different ids. Letters, digits and punctuation
/// stay; each '%' and every other byte is percent-encoded. A key too long for that becomes
/// "%sha256:" and its SHA-256, an empty one "%empty", neither of which encodes anything. Without a
/// key it is the event's id, since nothing waits for the event.
[[nodiscard]] std::string group_id(std::optional<std::string_view> key, const EventId& id);

/// The MessageDeduplicationId: SQS stores one message for each within five minutes.
[[nodiscard]] std::string deduplication_id(const EventView& event, std::string_view subscription);

/// The header of AWS X-Ray with the trace of a W3C traceparent, Root=1-...;Parent=...;Sampled=1;
/// nullopt if the text is not a traceparent.
[[nodiscard]] std::optional<std::string> trace_header(std::string_view traceparent);

// ---- The URLs of queues that were looked up.

class QueueUrls {
 public:
  /// Null if the URL is not known.
  [[nodiscard]] const std::string* find(const std::string& queue) const {
    const auto found = urls_.find(queue);
    return found == urls_.end() ? nullptr : &found->second;
  }
  void remember(const std::string& queue, std::string url) {
    // There may be ever new names, because events make them.
    if (urls_.size() >= kMost) urls_.clear();
    urls_[queue] = std::move(url);
  }
  void forget(const std::string& queue) { urls_.erase(queue); }
  void clear() { urls_.clear(); }

 private:
  static constexpr std::size_t kMost = 10'000;
  std::unordered_map<std::string, std::string> urls_;
};

}  // namespace outbox::sink::sqs
