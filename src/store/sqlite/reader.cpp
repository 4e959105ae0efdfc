// Reads the log by seq (docs/stores/sqlite.md).
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "store/sqlite/durable.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

Status check_cursor(const Cursor& cursor) {
  const Pair endless = Pair::endless();
  if (cursor.s1 == endless.s1 && cursor.s2 == endless.s2 && cursor.position >= 0) return {};
  return fail(Errc::corrupt, "sqlite: the cursor was written by another store");
}

class SqliteReader final : public LogReader {
 public:
  explicit SqliteReader(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Status begin(std::span<const Cursor> cursors) override {
    for (const Cursor& cursor : cursors) {
      OUTBOX_TRY(check_cursor(cursor));
    }
    return {};
  }

  [[nodiscard]] Status start(const PageRequest& request) override {
    if (request.lanes != kAllLanes)
      return fail(Errc::unsupported, "sqlite: a page of some lanes only cannot be read");
    OUTBOX_TRY(check_cursor(request.cursor));
    request_ = request;
    return {};
  }

  [[nodiscard]] Result<Page> finish() override {
    Page page;
    page.pair = pair_;
    page.from = request_.cursor.position;
    page.position = page.from;
    OUTBOX_TRY(fill(page));
    if (!page.events.empty()) page.position = page.events.back().seq;
    OUTBOX_TRY(durable_.note(connection_));
    return page;
  }

  [[nodiscard]] Status wait_durable() override { return durable_.wait(connection_); }
  [[nodiscard]] Result<Replication> replication(const Standbys& /*standbys*/) override {
    return fail(Errc::unsupported, "SQLite has no standbys");
  }
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  // The statement, and with it the read transaction, ends here: an open one would keep the WAL from
  // being reset.
  [[nodiscard]] Status fill(Page& page) {
    OUTBOX_TRY(Statement row, connection_.query(query::kReadPage, page.from,
                                                static_cast<std::int64_t>(request_.rows)));
    auto memory = std::make_shared<EventMemory>(kFirstPiece);
    bool full = false;
    while (row.has_row()) {
      EventView view = read_view(row);
      const std::size_t texts = size_of_texts(view);
      const std::size_t size = texts + kEventOverhead;
      full = !page.events.empty() && page.bytes + size > request_.bytes;
      if (full) break;
      keep(view, texts, *memory);
      page.events.push_back(view);
      page.bytes += size;
      OUTBOX_TRY(row.next());
    }
    page.caught_up = !full && page.events.size() < request_.rows;
    page.storage = std::move(memory);
    return {};
  }

  Connection connection_;
  DurableRead durable_;
  PageRequest request_;
  /// One object for all pages, since readers at the same place compare its address.
  const std::shared_ptr<const Pair> pair_{std::make_shared<const Pair>(Pair::endless())};
};

}  // namespace

std::unique_ptr<LogReader> make_reader(Connection connection) {
  return std::make_unique<SqliteReader>(std::move(connection));
}

}  // namespace outbox::store::sqlite
