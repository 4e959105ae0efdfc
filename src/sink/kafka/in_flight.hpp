// The messages that librdkafka has and that have no outcome yet. Each has a slot, whose number is
// the message's opaque in librdkafka. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <outbox/sink.hpp>
#include <vector>

#include "base/error.hpp"

namespace outbox::sink::kafka {

using TimePoint = std::chrono::steady_clock::time_point;

class InFlight {
 public:
  struct Entry {
    Token token{0};
    std::int64_t seq{0};
    std::size_t bytes{0};
    std::size_t place{0};  ///< The message's partition, as Client::place() numbers it.
    std::uint64_t batch{0};
    bool used{false};
  };

  /// Messages added from now on were sent at `now`.
  void begin_batch(TimePoint now) {
    drop_finished();
    if (!batches_.empty() && batches_.back().left == 0) {
      batches_.back().sent = now;
    } else {
      batches_.push_back({.sent = now, .left = 0});
    }
  }

  [[nodiscard]] std::size_t add(Token token, std::int64_t seq, std::size_t bytes,
                                std::size_t place = 0) {
    OUTBOX_CHECK(!batches_.empty());
    std::size_t slot = entries_.size();
    if (free_.empty()) {
      entries_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    entries_[slot] = {.token = token,
                      .seq = seq,
                      .bytes = bytes,
                      .place = place,
                      .batch = first_batch_ + batches_.size() - 1,
                      .used = true};
    ++batches_.back().left;
    ++size_;
    return slot;
  }

  [[nodiscard]] Entry take(std::size_t slot) {
    OUTBOX_CHECK(slot < entries_.size() && entries_[slot].used);
    const Entry entry = entries_[slot];
    entries_[slot].used = false;
    free_.push_back(slot);
    --batches_[static_cast<std::size_t>(entry.batch - first_batch_)].left;
    --size_;
    return entry;
  }

  /// Removes all entries, in no order.
  template <class Visit>
  void take_all(Visit&& visit) {
    for (std::size_t slot = 0; slot < entries_.size(); ++slot) {
      if (entries_[slot].used) visit(take(slot));
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  /// When the oldest message in flight was sent.
  [[nodiscard]] std::optional<TimePoint> oldest() {
    drop_finished();
    if (size_ == 0) return std::nullopt;
    return batches_.front().sent;
  }

 private:
  struct Batch {
    TimePoint sent;
    std::size_t left{0};
  };

  void drop_finished() {
    while (!batches_.empty() && batches_.front().left == 0) {
      batches_.pop_front();
      ++first_batch_;
    }
  }

  std::vector<Entry> entries_;
  std::vector<std::size_t> free_;
  std::deque<Batch> batches_;
  std::uint64_t first_batch_{0};
  std::size_t size_{0};
};

}  // namespace outbox::sink::kafka
