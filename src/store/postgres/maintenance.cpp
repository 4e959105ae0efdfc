// Keeps partitions ahead of the writers (docs/stores/postgres.md, "Partitions"), and removes relays
// that were killed.
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

/// Partitions exist for a day ahead, so there is no hurry.
constexpr std::chrono::minutes kEvery{1};

/// While this waits for its lock, writers to the default partition wait too. Longer transactions
/// get a second and a third try.
constexpr std::array<std::chrono::milliseconds, 3> kLockTimeouts{std::chrono::milliseconds(200),
                                                                 std::chrono::milliseconds(500),
                                                                 std::chrono::milliseconds(1000)};

std::string list(const char* title, const Rows& names) {
  std::string text;
  for (int row = 0; row < names.size(); ++row)
    text += (row == 0 ? title : ", ") + names.text(row, 0);
  return text;
}

class PostgresMaintenance final : public Maintenance {
 public:
  explicit PostgresMaintenance(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::string> run() override {
    const auto now = std::chrono::steady_clock::now();
    if (last_ && now - *last_ < kEvery) return std::string{};
    last_ = now;
    OUTBOX_TRY(const Rows silent, connection_.exec(&Queries::remove_silent));
    OUTBOX_TRY(const Rows partitions, add_partitions());
    std::string done = list("partitions added: ", partitions);
    if (!done.empty() && !silent.empty()) done += "; ";
    return done + list("silent relays removed: ", silent);
  }

 private:
  [[nodiscard]] Result<Rows> add_partitions() {
    for (const auto lock_timeout : kLockTimeouts) {
      auto done = connection_.exec_with(&Queries::no_limits, &Queries::make_partitions,
                                        {lock_timeout.count()});
      if (done) return done;
      if (done.error().origin != "pg:55P03" || lock_timeout == kLockTimeouts.back())
        return pass(done);
    }
    return Rows{};
  }

  Connection connection_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace

std::unique_ptr<Maintenance> make_maintenance(Connection connection) {
  return std::make_unique<PostgresMaintenance>(std::move(connection));
}

}  // namespace outbox::store::postgres
