// What relays and workers did, interval by interval.
#include "store/work_history.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::sql {
namespace {

using HistoryJson = nlohmann::json;

/// All rows as one parameter, so that they are one statement, however many there are.
std::string rows_to_json(std::span<const HistoryRow> rows) {
  HistoryJson all = HistoryJson::array();
  for (const HistoryRow& row : rows) {
    HistoryJson one = HistoryJson::object();
    one["subscription"] = row.subscription;
    one["type"] = row.type;
    one["delivered"] = row.delivered;
    one["failed"] = row.failed;
    one["parked"] = row.parked;
    one["dead"] = row.dead;
    one["latency"] = row.latency;
    one["pending"] = row.pending;
    one["oldest"] = row.oldest_us;
    all.push_back(std::move(one));
  }
  return write_json(all);
}

/// The counts of a JSON array. A bucket that no row has is null.
std::vector<std::int64_t> read_latency(const std::string& text) {
  std::vector<std::int64_t> counts;
  const HistoryJson array = try_parse_json<HistoryJson>(text);
  if (!array.is_array()) return counts;
  for (const HistoryJson& one : array)
    counts.push_back(one.is_number_integer() ? one.get<std::int64_t>() : 0);
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  return counts;
}

class SqlWorkHistory final : public store::WorkHistory {
 public:
  explicit SqlWorkHistory(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}

  [[nodiscard]] Result<std::int64_t> now() override {
    OUTBOX_TRY(const Rows rows, db_->exec(&Statements::clock));
    return rows.first<std::int64_t>();
  }

  [[nodiscard]] Status append(const EventId& who, std::int64_t at_us,
                              std::span<const HistoryRow> rows) override {
    const std::string json = rows_to_json(rows);
    return db_->run(&Statements::append_history, {who, Time{at_us}, json});
  }

  [[nodiscard]] Result<std::vector<HistoryPoint>> list(std::int64_t since_us,
                                                       std::int64_t step_us) override {
    OUTBOX_TRY(const Rows rows, db_->exec(&Statements::list_history, {Time{since_us}, step_us}));
    return rows.list([](Row row) {
      HistoryPoint point;
      std::string latency;
      row.read(point.subscription, point.row.type, point.at_us, point.row.delivered,
               point.row.failed, point.row.parked, point.row.dead, point.row.pending,
               point.row.oldest_us, latency);
      point.row.latency = read_latency(latency);
      return point;
    });
  }

  [[nodiscard]] Result<std::size_t> remove(std::int64_t before_us, std::size_t batch) override {
    OUTBOX_TRY(const Rows rows, db_->exec(&Statements::remove_history,
                                          {Time{before_us}, static_cast<std::int64_t>(batch)}));
    return rows.size();
  }

 private:
  const std::unique_ptr<Connection> db_;
};

}  // namespace

std::unique_ptr<store::WorkHistory> make_work_history(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlWorkHistory>(std::move(connection));
}

}  // namespace outbox::store::sql
