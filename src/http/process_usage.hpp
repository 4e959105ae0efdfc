// What the process uses of the machine, as Prometheus' client libraries report it.
#pragma once

#include <chrono>
#include <cstdint>

#include "metrics/families.hpp"

namespace outbox::http {

/// What could not be read is 0.
struct ProcessUsage {
  std::chrono::duration<double> cpu{0};  ///< User and system time.
  std::uint64_t resident_bytes{0};
  std::uint64_t virtual_bytes{0};
  std::uint64_t open_files{0};
  std::uint64_t max_files{0};
  std::uint64_t threads{0};
  double started_at{0};  ///< Unit: seconds since 1970.
};

[[nodiscard]] ProcessUsage read_usage();
void add_usage(const ProcessUsage& usage, metrics::Families& into);

}  // namespace outbox::http
