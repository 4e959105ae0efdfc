// Messages of one queue that are sent together. Pure.
#pragma once

#include <cstddef>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox::sink::sqs {

/// The most entries of one request (SendMessageBatch).
inline constexpr std::size_t kMostEntries = 10;

/// A message in a batch.
struct Entry {
  Token token{0};
  std::string members;  ///< The members of its JSON object, without Id.
  /// The bytes that SQS counts: the body, and names, types and values of the attributes.
  std::size_t bytes{0};
};

struct Batch {
  std::string queue;  ///< The queue's name, or its URL if the settings have that.
  std::vector<Entry> entries{};
  std::size_t bytes{0};

  [[nodiscard]] bool has_room(std::size_t more, std::size_t most) const {
    return entries.size() < kMostEntries && bytes + more <= most;
  }
  void add(Entry entry);
};

/// The body of the request. The entries' ids are their places: "0", "1"...
[[nodiscard]] std::string send_body(const Batch& batch, std::string_view queue_url);

/// Two batches with half of the entries each.
[[nodiscard]] std::pair<Batch, Batch> halves(Batch whole);

}  // namespace outbox::sink::sqs
