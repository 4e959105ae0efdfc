// When a broker refuses a whole batch because of one message, the messages of that batch are
// suspects. While there are any, messages are sent one at a time, and the one that fails alone is
// at fault. If all of them pass, the batch was too large. Suspects are identified by seq, because
// tokens change when the relay restarts. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>

namespace outbox::sink {

class Suspects {
 public:
  /// After `patience` single messages without a suspect among them the suspects are dropped,
  /// because their subscription may have changed.
  explicit Suspects(std::size_t patience) : patience_(patience) {}

  void add(std::int64_t seq, std::size_t bytes) {
    seqs_.insert(seq);
    bytes_ += bytes;
    strangers_ = 0;
  }

  /// The bytes of suspects added since the last call.
  [[nodiscard]] std::size_t take_bytes() { return std::exchange(bytes_, 0); }

  /// Notes that the message was acked or is at fault.
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

}  // namespace outbox::sink
