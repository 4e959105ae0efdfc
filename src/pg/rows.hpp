// The rows of a result, in binary form.
#pragma once

#include <libpq-fe.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "pg/wire.hpp"

namespace outbox::pg {

/// Owns a PGresult. Views into it are valid as long as it lives, even when it is moved.
class Rows {
 public:
  Rows() = default;
  explicit Rows(PGresult* result) : result_(result), size_(PQntuples(result)) {}

  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// The list of what `read` makes of each row, given its number.
  template <class Read>
  [[nodiscard]] auto list(Read read) const {
    std::vector<decltype(read(0))> all;
    all.reserve(static_cast<std::size_t>(size_));
    for (int row = 0; row < size_; ++row) all.push_back(read(row));
    return all;
  }
  [[nodiscard]] bool is_null(int row, int column) const noexcept {
    return PQgetisnull(result_.get(), row, column) != 0;
  }
  /// The bytes of text, bytea or json; those of jsonb have a version byte before the text.
  [[nodiscard]] std::string_view bytes(int row, int column) const noexcept {
    return {PQgetvalue(result_.get(), row, column),
            static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
  }
  [[nodiscard]] std::string text(int row, int column) const {
    return std::string(bytes(row, column));
  }
  [[nodiscard]] std::int16_t int2(int row, int column) const noexcept {
    return number<std::int16_t>(row, column);
  }
  [[nodiscard]] std::int32_t int4(int row, int column) const noexcept {
    return number<std::int32_t>(row, column);
  }
  [[nodiscard]] std::int64_t int8(int row, int column) const noexcept {
    return number<std::int64_t>(row, column);
  }
  /// The value of an xid8, a pg_lsn, or a bigint that holds 64 bits without a sign.
  [[nodiscard]] std::uint64_t uint64(int row, int column) const noexcept {
    return number<std::uint64_t>(row, column);
  }
  [[nodiscard]] bool boolean(int row, int column) const noexcept {
    return number<std::uint8_t>(row, column) != 0;
  }
  /// A timestamptz in microseconds since 1970, UTC. `infinity` stays the greatest number.
  [[nodiscard]] std::int64_t time_us(int row, int column) const noexcept {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    return std::min(int8(row, column), most - wire::kEpochUs) + wire::kEpochUs;
  }
  [[nodiscard]] EventId uuid(int row, int column) const noexcept {
    EventId id;
    std::memcpy(id.bytes.data(), fixed(row, column, id.bytes.size()), id.bytes.size());
    return id;
  }
  /// The command's tag: "COMMIT", "ROLLBACK", "INSERT 0 1".
  [[nodiscard]] std::string_view command() const noexcept { return PQcmdStatus(result_.get()); }
  [[nodiscard]] const PGresult* native() const noexcept { return result_.get(); }

 private:
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };

  /// Ends the process if the column has another type than the code expects, which is a bug.
  [[nodiscard]] const char* fixed(int row, int column, std::size_t size) const noexcept {
    OUTBOX_CHECK(static_cast<std::size_t>(PQgetlength(result_.get(), row, column)) == size);
    return PQgetvalue(result_.get(), row, column);
  }
  template <class T>
  [[nodiscard]] T number(int row, int column) const noexcept {
    return wire::read<T>(fixed(row, column, sizeof(T)));
  }

  std::unique_ptr<PGresult, Clear> result_;
  int size_{0};
};

}  // namespace outbox::pg
