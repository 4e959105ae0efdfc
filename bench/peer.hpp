// Other task libraries, measured beside ours: programs of bench/peers, which scripts/bench-peers builds.
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench.hpp"

namespace outbox::bench {

struct PeerDrain {
  double jobs_per_second{0};
  double peak_rss_mib{0};
};

/// Runs the program of the options. It makes its tables in this schema, and leaves them. Throws Exception.
[[nodiscard]] PeerDrain run_peer(const BenchOptions& options, const std::string& schema,
                                 std::int64_t jobs);

}  // namespace outbox::bench
