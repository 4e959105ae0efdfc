// The rows of one page, copied out of SQLite.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "store/log_reader.hpp"
#include "store/sqlite/statement.hpp"

namespace outbox::store::sqlite {

/// Memory for the texts of a page: a few pieces, each twice the last one, freed with the page.
class PageStorage {
 public:
  [[nodiscard]] char* allocate(std::size_t size);

 private:
  static constexpr std::size_t kFirstPiece = 512;
  static constexpr std::size_t kLargestPiece = std::size_t{64} << 10U;
  std::size_t next_piece_{kFirstPiece};
  std::vector<std::unique_ptr<char[]>> pieces_;
  char* at_{nullptr};
  std::size_t left_{0};
};

/// The row a statement of query::kReadPage stands on, before it is copied. Valid until the next step().
class PageRow {
 public:
  explicit PageRow(const Statement& row);
  /// Payload and texts.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// The copy points into `storage`.
  [[nodiscard]] EventView copy(PageStorage& storage) const;

 private:
  EventView view_;
  std::size_t bytes_{0};
};

}  // namespace outbox::store::sqlite
