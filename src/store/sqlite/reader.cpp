#include "store/sqlite/reader.hpp"

#include <utility>

#include "base/error.hpp"
#include "store/common/request.hpp"
#include "store/sqlite/page.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

Status check_cursor(const Cursor& cursor) {
  const Pair endless = Pair::endless();
  if (cursor.s1 == endless.s1 && cursor.s2 == endless.s2 && cursor.position >= 0) return {};
  return fail(Errc::corrupt, "sqlite: the cursor was written by another store");
}

}  // namespace

Status SqliteReader::begin(std::span<const Cursor> cursors) {
  for (const Cursor& cursor : cursors) {
    if (Status status = check_cursor(cursor); !status) return status;
  }
  return {};
}

Status SqliteReader::start(const PageRequest& request) {
  if (Status status = check_request(request); !status) return status;
  if (Status status = check_cursor(request.cursor); !status) return status;
  request_ = request;
  return {};
}

Result<Page> SqliteReader::finish() {
  Page page;
  page.pair = pair_;
  page.from = request_.cursor.position;
  page.position = page.from;
  if (Status status = fill(page); !status) return pass(status);
  if (!page.events.empty()) page.position = page.events.back().seq;
  if (Status status = durable_.note(connection_); !status) return pass(status);
  return page;
}

// The statement, and with it the read transaction, ends here: an open one would keep the WAL from being reset.
Status SqliteReader::fill(Page& page) {
  auto rows = connection_.statement(query::kReadPage);
  if (!rows) return pass(rows);
  rows->bind(1, page.from).bind(2, static_cast<std::int64_t>(request_.rows));
  auto storage = std::make_shared<PageStorage>();
  while (true) {
    auto row = rows->step();
    if (!row) return pass(row);
    if (!*row) break;
    const PageRow event(*rows);
    const std::size_t size = event.bytes() + kEventOverhead;
    if (!page.events.empty() && page.bytes + size > request_.bytes) {
      page.storage = std::move(storage);
      return {};
    }
    page.events.push_back(event.copy(*storage));
    page.bytes += size;
  }
  page.caught_up = page.events.size() < request_.rows;
  page.storage = std::move(storage);
  return {};
}

Status SqliteReader::wait_durable() { return durable_.wait(connection_); }

}  // namespace outbox::store::sqlite
