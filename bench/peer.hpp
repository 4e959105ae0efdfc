// Other task libraries, measured beside the outbox. Their programs are in bench/peers, and
// scripts/bench-peers builds them.
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench.hpp"

namespace outbox::bench {

struct PeerDrain {
  double jobs_per_second{0};
  double peak_rss_mib{0};
};

/// Runs the program of the options, which leaves its tables in this schema. Throws Exception.
[[nodiscard]] PeerDrain run_peer(const BenchOptions& options, const std::string& schema,
                                 std::int64_t jobs);

}  // namespace outbox::bench
