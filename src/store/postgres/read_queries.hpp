// The statements of the reader. The argument for their form is in docs/design/reading.md; do not simplify them without
// the storm test.
#pragma once

#include <string_view>

#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

struct ReadQueries {
  // Page 1 of a pair that ends in the present: rows and S2 in one statement, so that its own snapshot is S2.
  Query present;       ///< S1 has transactions in progress: two streams, merged by seq.
  Query present_lean;  ///< It has none: one stream.
  // A page of a pair whose S2 is known, bounded above by xmax(S2) and by the value of the sequence taken with S2.
  Query bounded;
  Query bounded_lean;
  Query big_payloads;    ///< Payloads that a page left out because of their size.
  Query flushed;         ///< How far the log is flushed.
  Query force_flush;     ///< A commit of our own, with settings() local to its transaction.
  Query sequence;        ///< The value of the sequence, for a mark.
  Query mark;            ///< Writes a mark.
  Query marks;           ///< The newest marks of every subscription.
  Query settings_check;  ///< Whether the plan settings are in force without us.
  Query begin;           ///< A transaction for one page, where they are not.
  Query settings;
  Query flush_settings;
  Query commit;
};

/// `schema`: quoted. Without `wal_functions` (some managed services refuse them) the positions are null and every barrier
/// is forced.
[[nodiscard]] ReadQueries make_read_queries(std::string_view schema, bool wal_functions = true);

/// Payloads above this are left out of a page and fetched by themselves, so that a page cannot be arbitrarily large.
inline constexpr int kBigPayload = 16384;

}  // namespace outbox::store::postgres
