// Appends settlements, reads the newest cursor.
#pragma once

#include <string>
#include <utility>

#include "store/progress.hpp"
#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

/// Open the connection with Sync::normal: what power loss takes back is delivered again.
class SqliteProgress final : public Progress {
 public:
  /// `outbox`: the identity of the one whose cursors it writes.
  SqliteProgress(Connection connection, std::string outbox)
      : connection_(std::move(connection)), outbox_(std::move(outbox)) {}

  [[nodiscard]] Result<std::vector<Strand>> load(std::int32_t subscription) override;
  [[nodiscard]] Status append(const ProgressBatch& batch, Durability durability) override;
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  [[nodiscard]] Status set_durability(Durability durability);
  [[nodiscard]] Status check_outbox();
  [[nodiscard]] Status insert(const Settlement& row, std::int64_t at);

  Connection connection_;
  const std::string outbox_;
  Durability set_{Durability::eventual};
};

}  // namespace outbox::store::sqlite
