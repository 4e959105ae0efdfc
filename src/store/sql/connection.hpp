// What the parts in store/sql need of a database (docs/design/sql.md): statements by name, rows
// that are read into structs, and transactions.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "store/audit.hpp"
#include "store/sql/statements.hpp"
#include "store/text.hpp"

namespace outbox::store::sql {

/// Bytes that are no text.
struct Bytes {
  std::string_view bytes;
};
/// Microseconds since 1970, UTC.
struct Time {
  std::int64_t us{0};
};
/// A parameter; nullptr is null. Texts are borrowed: they must stay valid until the statement has
/// run.
using Param =
    std::variant<std::nullptr_t, bool, std::int32_t, std::int64_t, Time, EventId, std::string_view,
                 Bytes, std::span<const std::int64_t>, std::span<const std::string>>;
using Params = std::vector<Param>;

[[nodiscard]] inline Param text_or_null(std::string_view text) {
  return text.empty() ? Param(nullptr) : Param(text);
}
template <class Value>
[[nodiscard]] Param or_null(const std::optional<Value>& value) {
  return value ? Param(*value) : Param(nullptr);
}

/// A value of a row. Numbers, truth values and times (in microseconds) are numbers; everything else
/// is bytes.
using Cell = std::variant<std::nullptr_t, std::int64_t, std::string>;

/// Reads the columns of a row one after the other, each into a member of its type. A null leaves
/// the member as it is.
class Row {
 public:
  explicit Row(const Cell* column) : column_(column) {}

  template <class... Members>
  void read(Members&... members) {
    (take(members), ...);
  }
  template <class Member>
  [[nodiscard]] Member next() {
    Member member{};
    take(member);
    return member;
  }

 private:
  template <std::integral Number>
  void take(Number& member) {
    if (const auto* number = std::get_if<std::int64_t>(column_++))
      member = static_cast<Number>(*number);
  }
  void take(std::string& member) {
    if (const auto* bytes = std::get_if<std::string>(column_++)) member = *bytes;
  }
  /// The column holds the id's 16 bytes, or its text; an empty text stands for no id.
  void take(EventId& member) {
    std::optional<EventId> id;
    take(id);
    if (id) member = *id;
  }
  void take(std::optional<EventId>& member) {
    const auto* bytes = std::get_if<std::string>(column_++);
    if (bytes == nullptr) return;
    if (bytes->size() == sizeof(EventId::bytes)) {
      member = to_id(*bytes);
    } else if (auto id = EventId::parse(*bytes)) {
      member = *id;
    }
  }
  template <class Member>
  void take(std::optional<Member>& member) {
    if (std::holds_alternative<std::nullptr_t>(*column_)) {
      ++column_;
    } else {
      take(member.emplace());
    }
  }

  const Cell* column_;
};

class Rows {
 public:
  Rows() = default;
  Rows(std::size_t columns, std::vector<Cell> cells)
      : columns_(columns), cells_(std::move(cells)) {}

  [[nodiscard]] std::size_t size() const { return columns_ == 0 ? 0 : cells_.size() / columns_; }
  [[nodiscard]] bool empty() const { return cells_.empty(); }
  [[nodiscard]] Row operator[](std::size_t row) const { return Row(&cells_[row * columns_]); }
  /// The first column of the first row; if there is no row, the value that Member{} has.
  template <class Member>
  [[nodiscard]] Member first() const {
    return empty() ? Member{} : (*this)[0].template next<Member>();
  }
  /// The list of what `read` makes of each row.
  template <class Read>
  [[nodiscard]] auto list(Read read) const {
    std::vector<decltype(read(std::declval<Row>()))> all;
    all.reserve(size());
    for (std::size_t row = 0; row < size(); ++row) all.push_back(read((*this)[row]));
    return all;
  }

 private:
  std::size_t columns_{0};
  std::vector<Cell> cells_;
};

/// How the body of a transaction ends it.
enum class Decision : std::uint8_t { commit, rollback };

/// It is used by one thread at a time.
class Connection {
 public:
  virtual ~Connection() = default;

  /// Runs a statement. Outside of a transaction the statement is a transaction of its own.
  [[nodiscard]] virtual Result<Rows> exec(Named statement, const Params& params = {}) = 0;
  /// Runs a statement whose rows do not matter.
  [[nodiscard]] Status run(Named statement, const Params& params = {}) {
    auto rows = exec(statement, params);
    return rows ? Status{} : Status(pass(rows));
  }
  /// Runs the statement and then writes these valid events, in one round trip.
  [[nodiscard]] virtual Status run_and_write(Named statement, const Params& params,
                                             std::span<const Event> events,
                                             std::span<const EventId> ids) = 0;
  /// Runs `body` in a transaction, and rolls back on any failure. The body may run a second time
  /// when its first run found that it cannot use prepared statements.
  [[nodiscard]] virtual Status transact(const std::function<Result<Decision>()>& body) = 0;

  /// The person for whom this connection changes rows, and why (store/sql/audit.hpp). Not set for
  /// relays, workers and applications.
  [[nodiscard]] const std::optional<PersonDecision>& decision() const noexcept { return decision_; }
  void decided_by(std::optional<PersonDecision> decision) { decision_ = std::move(decision); }

 protected:
  Connection() = default;
  Connection(const Connection&) = default;
  Connection& operator=(const Connection&) = default;
  Connection(Connection&&) = default;
  Connection& operator=(Connection&&) = default;

 private:
  std::optional<PersonDecision> decision_;
};

}  // namespace outbox::store::sql
