// An event as the sink keeps it until its outcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "sink/postgres/table_name.hpp"

namespace outbox::sink::postgres {

struct Row {
  Token token{0};
  EventId id;
  std::int64_t seq{0};
  std::string replay;  ///< The number of the replay that sends it; empty: none does.
  TableName table;
  std::vector<std::optional<std::string>> values;  ///< One per column.
  /// Nothing of its keys may be inserted after it was refused: the ordering key, and the message key, should that differ.
  std::vector<std::string> keys;
  std::size_t bytes{0};
};

}  // namespace outbox::sink::postgres
