// Which partitions know this producer. A broker accepts any sequence number from a producer whose
// state it does not have for the partition. With two batches in flight it may then refuse the first
// and write the second, and librdkafka, which relies on the order of batches, reports the first as
// delivered. So until a partition has acked a message of this client, only one message is in flight
// to it; then the broker checks the sequence, and batches can be pipelined. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace outbox::sink::kafka {

class FirstBatches {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// How long a partition is trusted to know the producer. Brokers forget a producer that sent
  /// nothing for producer.id.expiration.ms, a day by default.
  static constexpr std::chrono::hours kRemembered{1};

  /// Forgets all partitions, because a new client is a new producer.
  void clear() { places_.clear(); }

  [[nodiscard]] bool may_send(std::size_t place, TimePoint now) {
    if (place >= places_.size()) places_.resize(place + 1);
    const Place& at = places_[place];
    return at.in_flight == 0 || (at.known && now - at.acked < kRemembered);
  }
  void sent(std::size_t place) {
    if (place >= places_.size()) places_.resize(place + 1);
    ++places_[place].in_flight;
  }
  void acked(std::size_t place, TimePoint now) {
    places_[place].known = true;
    places_[place].acked = now;
    --places_[place].in_flight;
  }
  void not_acked(std::size_t place) { --places_[place].in_flight; }

 private:
  struct Place {
    std::uint32_t in_flight{0};
    bool known{false};
    TimePoint acked{};
  };
  std::vector<Place> places_;
};

}  // namespace outbox::sink::kafka
