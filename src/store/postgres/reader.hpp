// Reads pairs of snapshots page by page (docs/design/reading.md).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "store/log_reader.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/mark.hpp"
#include "store/postgres/marks.hpp"
#include "store/postgres/queries.hpp"
#include "store/postgres/snapshot.hpp"

namespace outbox::store::postgres {

class PostgresReader final : public LogReader {
 public:
  /// `schema`: not quoted.
  PostgresReader(Connection connection, std::shared_ptr<const Queries> queries, std::string schema,
                 std::shared_ptr<MarkBook> marks)
      : connection_(std::move(connection)),
        queries_(std::move(queries)),
        schema_(std::move(schema)),
        read_(std::make_unique<ReadQueries>(read_queries(schema_))),
        marks_(std::move(marks)) {}

  [[nodiscard]] Status begin(std::span<const Cursor> cursors) override;
  [[nodiscard]] Status start(const PageRequest& request) override;
  [[nodiscard]] Result<Page> finish() override;
  [[nodiscard]] Status wait_durable() override;
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  /// The log up to `insert` was written by transactions visible in the newest S2.
  struct Barrier {
    std::uint64_t insert{0};
    std::uint64_t flush{0};
  };

  [[nodiscard]] Status check_wal_functions();
  [[nodiscard]] Result<SequenceReading> load_marks();
  [[nodiscard]] Status check_sequence(std::int64_t value, std::int64_t reached) const;
  [[nodiscard]] Status send(const PageRequest& request);
  void send_page(const Query& query, Params params);
  [[nodiscard]] Result<Params> params_of(const PageRequest& request, const Snapshot& s1) const;
  [[nodiscard]] Status take_head(const Rows& rows, Page& page);
  [[nodiscard]] Status check_incarnation(const Rows& rows, int column) const;
  [[nodiscard]] Status fill(Page& page, Rows rows);
  [[nodiscard]] Status fetch_big_parts(Rows& big, const Rows& read, int count);
  [[nodiscard]] Status send_ahead(const Page& page);
  [[nodiscard]] int cut(const Rows& rows, int available, std::size_t& bytes) const;
  [[nodiscard]] Result<bool> flushed();
  [[nodiscard]] Status force_flush();

  Connection connection_;
  const std::shared_ptr<const Queries> queries_;
  const std::string schema_;
  std::unique_ptr<ReadQueries> read_;
  std::shared_ptr<MarkBook> marks_;
  bool settings_in_force_{false};

  PageRequest request_;               ///< What finish() will answer.
  std::optional<PageRequest> ahead_;  ///< Sent before it was asked for.
  std::size_t rows_hint_{10000};      ///< Fewer after a page that ran into the byte limit.
  std::size_t rows_asked_{0};
  std::optional<Barrier> barrier_;
  std::chrono::nanoseconds flush_takes_{std::chrono::microseconds(500)};
};

}  // namespace outbox::store::postgres
