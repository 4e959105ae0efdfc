// Reads the log by seq (docs/stores/sqlite.md).
#include <algorithm>
#include <array>
#include <cstring>
#include <memory_resource>
#include <utility>

#include "base/error.hpp"
#include "store/common/page_request.hpp"
#include "store/sqlite/durable.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

// Columns of query::kReadPage.
enum Column : int {
  kSeq,
  kId,
  kAggregateType,
  kAggregateId,
  kEventType,
  kPayload,
  kContentType,
  kHeaders,
  kCreatedAt,
  kOccurredAt
};

/// Memory for the texts of one page.
using PageMemory = std::pmr::monotonic_buffer_resource;
constexpr std::size_t kFirstPiece = 512;

/// The current row. Its texts are valid until the next one.
EventView view_of(const Statement& row) {
  EventView view;
  view.seq = row.integer(kSeq);
  const std::string_view id = row.bytes(kId);
  std::memcpy(view.id.bytes.data(), id.data(), std::min(id.size(), view.id.bytes.size()));
  view.aggregate_type = row.bytes(kAggregateType);
  view.aggregate_id = row.bytes(kAggregateId);
  view.event_type = row.bytes(kEventType);
  view.payload = row.bytes(kPayload);
  view.content_type = row.bytes(kContentType);
  view.headers = row.bytes(kHeaders);
  view.created_at_us = row.integer(kCreatedAt);
  if (!row.is_null(kOccurredAt)) view.occurred_at_us = row.integer(kOccurredAt);
  return view;
}

std::array<std::string_view*, 6> texts_of(EventView& view) {
  return {&view.aggregate_type, &view.aggregate_id, &view.event_type,
          &view.payload,        &view.content_type, &view.headers};
}

std::size_t size_of(EventView& view) {
  std::size_t size = 0;
  for (const std::string_view* text : texts_of(view)) size += text->size();
  return size;
}

/// Copies the texts, `size` bytes, and lets the view point to the copy.
void keep(EventView& view, std::size_t size, PageMemory& memory) {
  char* to = static_cast<char*>(memory.allocate(size, 1));
  for (std::string_view* text : texts_of(view)) {
    if (text->empty()) continue;
    std::memcpy(to, text->data(), text->size());
    *text = {to, text->size()};
    to += text->size();
  }
}

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
      if (Status status = check_cursor(cursor); !status) return status;
    }
    return {};
  }

  [[nodiscard]] Status start(const PageRequest& request) override {
    if (Status status = check_request(request); !status) return status;
    if (Status status = check_cursor(request.cursor); !status) return status;
    request_ = request;
    return {};
  }

  [[nodiscard]] Result<Page> finish() override {
    Page page;
    page.pair = pair_;
    page.from = request_.cursor.position;
    page.position = page.from;
    if (Status status = fill(page); !status) return pass(status);
    if (!page.events.empty()) page.position = page.events.back().seq;
    if (Status status = durable_.note(connection_); !status) return pass(status);
    return page;
  }

  [[nodiscard]] Status wait_durable() override { return durable_.wait(connection_); }
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  // The statement, and with it the read transaction, ends here: an open one would keep the WAL from being reset.
  [[nodiscard]] Status fill(Page& page) {
    OUTBOX_TRY(Statement row, connection_.query(query::kReadPage, page.from,
                                                static_cast<std::int64_t>(request_.rows)));
    auto memory = std::make_shared<PageMemory>(kFirstPiece);
    bool full = false;
    while (row.has_row()) {
      EventView view = view_of(row);
      const std::size_t texts = size_of(view);
      const std::size_t size = texts + kEventOverhead;
      full = !page.events.empty() && page.bytes + size > request_.bytes;
      if (full) break;
      keep(view, texts, *memory);
      page.events.push_back(view);
      page.bytes += size;
      if (Status status = row.next(); !status) return status;
    }
    page.caught_up = !full && page.events.size() < request_.rows;
    page.storage = std::move(memory);
    return {};
  }

  Connection connection_;
  DurableRead durable_;
  PageRequest request_;
  /// One for all pages: readers at the same place compare its address.
  const std::shared_ptr<const Pair> pair_{std::make_shared<const Pair>(Pair::endless())};
};

}  // namespace

std::unique_ptr<LogReader> make_reader(Connection connection) {
  return std::make_unique<SqliteReader>(std::move(connection));
}

}  // namespace outbox::store::sqlite
