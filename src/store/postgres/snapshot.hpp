// Parses the text form of a pg_snapshot, "xmin:xmax:xip,xip". Pure.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <string_view>
#include <vector>

namespace outbox::store::postgres {

struct Snapshot {
  std::uint64_t xmin{0};
  std::uint64_t xmax{0};
  std::vector<std::uint64_t> xip;  ///< The transactions in progress, in ascending order.
};

[[nodiscard]] Result<Snapshot> parse_snapshot(std::string_view text);

}  // namespace outbox::store::postgres
