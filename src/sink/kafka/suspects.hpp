// After the broker refused a whole batch because of one message in it, the messages of that batch are under suspicion: as
// long as any is, they go out one at a time, and the one that fails alone is the culprit. When all of them pass, none was:
// the batch as such was too large. Known by seq, because tokens change when the relay starts anew. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>

namespace outbox::sink::kafka {

class Suspects {
 public:
  /// `patience`: so many messages may pass one at a time with no suspect among them; then the suspects are taken to be gone
  /// (their subscription changed, for instance).
  explicit Suspects(std::size_t patience) : patience_(patience) {}

  void add(std::int64_t seq, std::size_t bytes) {
    seqs_.insert(seq);
    bytes_ += bytes;
    strangers_ = 0;
  }

  /// What was under suspicion since the last call.
  [[nodiscard]] std::size_t take_bytes() { return std::exchange(bytes_, 0); }

  /// The message was acked, or found guilty.
  void settled(std::int64_t seq) {
    if (seqs_.empty()) return;
    if (seqs_.erase(seq) > 0) {
      strangers_ = 0;
    } else if (++strangers_ >= patience_) {
      seqs_.clear();
    }
  }

  [[nodiscard]] bool any() const { return !seqs_.empty(); }

 private:
  std::size_t patience_;
  std::size_t strangers_{0};
  std::size_t bytes_{0};
  std::unordered_set<std::int64_t> seqs_;
};

}  // namespace outbox::sink::kafka
