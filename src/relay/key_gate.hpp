// The keys of a subscription that have parked events: the stream sends none of their events, it parks them behind. Shared by the
// strands and the retries; the loop's thread only. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "relay/late_sends.hpp"

namespace outbox::relay {

class KeyGate {
 public:
  /// `key`: event::key_hash(); 0 is no key and never blocked. Two keys of one hash block each other.
  [[nodiscard]] bool blocked(std::uint64_t key) const { return rows_.contains(key); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Rows of all keys, and those without a key: written, or about to be.
  [[nodiscard]] std::size_t rows() const { return all_; }

  void add(std::uint64_t key, std::size_t rows = 1) {
    all_ += rows;
    if (key != 0) rows_[key] += rows;
  }
  /// After the transaction that removed the row, or made it dead in a key that goes on, has committed.
  void remove(std::uint64_t key) {
    if (all_ > 0) --all_;
    const auto found = rows_.find(key);
    if (found != rows_.end() && --found->second == 0) rows_.erase(found);
  }
  void clear() {
    rows_.clear();
    all_ = 0;
  }

  LateSends late;

 private:
  std::unordered_map<std::uint64_t, std::size_t> rows_;
  std::size_t all_{0};
};

}  // namespace outbox::relay
