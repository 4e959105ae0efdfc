#include <array>
#include <string_view>

#include "base/error.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

struct LookupIndex {
  std::string_view name;
  std::string_view keys;
};
constexpr std::array<LookupIndex, 2> kLookupIndexes{
    {{"event_by_id", "id"}, {"event_by_key", "aggregate_type, aggregate_id, seq"}}};
/// The length of the table's name, with which the name of an index begins. The rest, such as
/// "_by_id", is added to the name of a partition.
constexpr std::size_t kTableName = std::string_view("event").size();

/// The number of attempts to get a lock, of 200 ms each; in between, the writers that queued behind
/// it go on.
constexpr int kBuildAttempts = 150;

class Builder {
 public:
  Builder(Connection& connection, const LookupIndex& index)
      : connection_(connection), index_(index) {}

  [[nodiscard]] Status make() {
    OUTBOX_TRY(patiently(&Queries::begin_index, ""));
    OUTBOX_TRY(const Rows gaps, connection_.exec(&Queries::lookup_gaps, {index_.name}));
    for (int row = 0; row < gaps.size(); ++row) {
      const std::string part = gaps.text(row, 0);
      // A part that was interrupted while it was made is never used.
      OUTBOX_TRY(gaps.boolean(row, 1) ? run(&Queries::drop_index_part, part) : Status{});
      OUTBOX_TRY(run(&Queries::make_index_part, part));
      OUTBOX_TRY(patiently(&Queries::attach_index, part));
    }
    return {};
  }

 private:
  [[nodiscard]] Status run(Connection::Named named, const std::string& part) {
    const Query& query = connection_.queries().*named;
    std::string sql = query.sql;
    replace_all(sql, "{index}", index_.name);
    replace_all(sql, "{keys}", index_.keys);
    replace_all(sql, "{part_index}", part + std::string(index_.name.substr(kTableName)));
    replace_all(sql, "{part}", part);
    return connection_.script(query.what, sql);
  }

  [[nodiscard]] Status patiently(Connection::Named named, const std::string& part) {
    for (int attempt = 1;; ++attempt) {
      Status status = run(named, part);
      if (status) return status;
      connection_.rollback();
      const bool locked = status.error().origin == "pg:55P03";
      if (!locked || attempt == kBuildAttempts) return status;
    }
  }

  Connection& connection_;
  const LookupIndex index_;
};

}  // namespace

Result<std::vector<std::string>> make_lookup_indexes(Connection& connection) {
  std::vector<std::string> made;
  for (const LookupIndex& index : kLookupIndexes) {
    OUTBOX_TRY(const Rows there, connection.exec(&Queries::has_lookup_index, {index.name}));
    if (there.boolean(0, 0)) continue;
    OUTBOX_TRY(Builder(connection, index).make());
    made.emplace_back(index.name);
  }
  return made;
}

}  // namespace outbox::store::postgres
