// Writers at a steady rate, and the times at which their events arrived somewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <outbox/error.hpp>
#include <string_view>
#include <vector>

#include "bench/postgres_fixture.hpp"

namespace outbox::bench {

/// The payload of a paced event begins with the time just before its COMMIT was sent, in ns of the steady clock.
class Arrivals {
 public:
  /// Any thread.
  void arrived(std::string_view body);
  [[nodiscard]] bool wait_for(std::size_t count, std::chrono::seconds limit);
  [[nodiscard]] std::vector<double> latencies_ms();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<double> latencies_ms_;
};

struct Latencies {
  std::vector<double> event_ms;   ///< From just before COMMIT was sent to the arrival.
  std::vector<double> commit_ms;  ///< Of COMMIT alone.
};

/// One-event transactions with synchronous commit from two connections, `per_second` in all. Returns how long each took
/// from sending the event and COMMIT to the answer: no latency can be shorter than that. Unit: milliseconds.
[[nodiscard]] Result<std::vector<double>> write_paced(PostgresFixture& log, std::int64_t events,
                                                      int per_second);

}  // namespace outbox::bench
