#include "store/common/task_status.hpp"

#include <libpq-fe.h>

#include <string>

#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

/// One row, by the names of its columns. A column that is missing is null.
class StatusRow {
 public:
  StatusRow(const pg::Rows& rows, int row) : rows_(rows), row_(row) {}

  [[nodiscard]] std::optional<int> find(const char* name) const {
    const int column = PQfnumber(rows_.native(), name);
    if (column < 0 || rows_.is_null(row_, column)) return std::nullopt;
    return column;
  }
  [[nodiscard]] std::string text(const char* name) const {
    const auto column = find(name);
    return column ? rows_.text(row_, *column) : std::string();
  }
  [[nodiscard]] std::optional<TaskStatus::Time> time(const char* name) const {
    const auto column = find(name);
    if (!column) return std::nullopt;
    return task_time(rows_.time_us(row_, *column));
  }
  [[nodiscard]] std::size_t int4(const char* name) const {
    const auto column = find(name);
    return column ? static_cast<std::size_t>(rows_.int4(row_, *column)) : 0;
  }
  [[nodiscard]] std::optional<std::size_t> int2(const char* name) const {
    const auto column = find(name);
    if (!column) return std::nullopt;
    return static_cast<std::size_t>(rows_.int2(row_, *column));
  }

 private:
  const pg::Rows& rows_;
  int row_;
};

}  // namespace

std::optional<TaskStatus> task_status_of(const pg::Rows& rows, const EventId& id) {
  if (rows.empty()) return std::nullopt;
  const StatusRow row(rows, rows.size() - 1);
  TaskStatus status{.id = id,
                    .queue = row.text("queue"),
                    .type = row.text("type"),
                    .key = row.text("key"),
                    .attempts = row.int4("attempts"),
                    .next_attempt_at = row.time("next_attempt_at"),
                    .ended_at = row.time("ended_at"),
                    .worker = row.text("worker"),
                    .running_since = row.time("running_since"),
                    .percent = row.int2("percent"),
                    .progress = row.text("progress"),
                    .error = row.text("error")};
  if (const auto at = row.time("enqueued_at")) status.enqueued_at = *at;
  if (row.find("result")) status.result = row.text("result");
  status.priority = row.int4("priority");
  set_state(status, row.text("state"));
  return status;
}

}  // namespace outbox::store::postgres
