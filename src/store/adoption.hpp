// Another outbox's table whose INSERTs are forwarded to the log (docs/design/adopt.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "store/interface.hpp"
#include "store/store.hpp"

namespace outbox::store {

/// Which rows that are in the table already are taken over. by_shape means pending, but none for
/// Debezium's layout.
enum class Backlog : std::uint8_t { by_shape, pending, all, none };

/// What a person says about a table; the rest is recognised.
struct AdoptionOptions {
  std::map<std::string, std::string> columns{};  ///< From field to column; an empty column means
                                                 ///< none.
  std::map<std::string, std::string> values{};   ///< For aggregate_type, event_type and
                                                 ///< content_type.
  std::vector<std::string> sent_values{};
  std::vector<std::string> pending_values{};
  std::vector<std::pair<std::string, std::string>> headers{};  ///< From column to the header's
                                                               ///< name.
  Backlog backlog{Backlog::by_shape};

  [[nodiscard]] bool empty() const {
    return columns.empty() && values.empty() && sent_values.empty() && pending_values.empty() &&
           headers.empty() && backlog == Backlog::by_shape;
  }
};

/// How long writers may wait for a lock of ours, and for how long we try to get it.
struct AdoptionLocks {
  std::chrono::milliseconds wait{std::chrono::seconds(1)};
  std::chrono::milliseconds patience{std::chrono::minutes(1)};
};

/// Why the rows of an adopted table are not forwarded any more, or why its name means another
/// table.
enum class AdoptionFault : std::uint8_t {
  none,
  dropped,       ///< The table was dropped; or it was renamed, and its trigger was dropped.
  remade,        ///< Another table has its name, and no table has its trigger.
  replaced,      ///< Its rows are forwarded, but another table has its former name.
  no_trigger,    ///< The trigger was dropped.
  off,           ///< The trigger is disabled.
  replica_only,  ///< ENABLE REPLICA TRIGGER: it fires only for rows of a replication.
};

/// A table that is adopted, or was.
struct AdoptionRow {
  std::int32_t id{0};
  std::string table{};  ///< Its present name; if the table is gone, its last known name.
  /// copying, draining, forwarding or ended; or broken, which is one of these with a fault other
  /// than `replaced`.
  std::string state{};
  std::string cut_lsn{};
  std::int64_t taken_over{0};
  std::int64_t staged{0};  ///< Rows that were forwarded later, because older rows came first.
  std::int64_t begun_us{0};
  std::optional<std::int64_t> switched_us{};
  bool debezium{false};
  std::int64_t waiting{0};  ///< Rows that are staged now, at most kManyWaiting.
  bool more_waiting{false};
  bool running{false};  ///< A command is adopting a table, this one or another.
  AdoptionFault fault{AdoptionFault::none};
  /// For `off` and `replica_only`, the partition; for `replaced`, the former name.
  std::string fault_at{};

  static constexpr std::int64_t kManyWaiting = 10'000;

  [[nodiscard]] bool is_unfinished() const { return state == "copying" || state == "draining"; }
};

/// "Debezium's" or "written by hand".
[[nodiscard]] const char* layout_text(bool debezium) noexcept;
/// Such as "its trigger outbox_adopt is disabled"; empty if there is no fault.
[[nodiscard]] std::string fault_text(const AdoptionRow& row);
/// The fault, and where rows have gone since then: "... is disabled: rows inserted since then are
/// in the table only".
[[nodiscard]] std::string broken_text(const AdoptionRow& row);

struct AdoptionPlan {
  std::string table{};                                        ///< Quoted, with its schema.
  std::string layout{};                                       ///< "Debezium's", "written by hand"
  std::vector<std::pair<std::string, std::string>> fields{};  ///< Each field and where it comes
                                                              ///< from.
  std::vector<std::string> unused{};                          ///< Columns that are not forwarded.
  std::optional<AdoptionRow> adopted{};  ///< The adoption, if it was begun; then the rest may be
                                         ///< missing.
  std::int64_t pending{0};               ///< Rows that would be taken over.
  std::int64_t refused{0};               ///< Of these, rows that the log refuses.
  std::vector<std::string> problems{};   ///< The problems of the first of them.
  std::vector<std::string> statements{};
  /// The columns of an adoption that was begun were changed, and --apply makes the trigger's
  /// function again.
  bool misfit{false};
};

struct Adopted {
  AdoptionRow row{};
  bool changed{false};     ///< False if there was nothing to do.
  bool remade{false};      ///< The trigger's function was made again for columns that were changed.
  std::int64_t marked{0};  ///< By undo: rows that were marked as sent.
  bool unmarked{false};    ///< By undo: nothing tells which of the pending rows were forwarded.
  /// How long writers may have waited: for the lock and while it was held.
  double longest_lock_ms{0};
};

/// It is used by one thread at a time. `says` gets a line for each step.
class Adopter : public Interface {
 public:
  using Says = std::function<void(const std::string&)>;

  [[nodiscard]] virtual Result<std::vector<AdoptionRow>> list() = 0;
  /// The adoption of a table that has not ended. `table` is as people write it: the table's present
  /// name, or its name when it was adopted, even if the table was dropped.
  [[nodiscard]] virtual Result<std::optional<AdoptionRow>> find(const std::string& table) = 0;
  /// Changes nothing.
  [[nodiscard]] virtual Result<AdoptionPlan> plan(const std::string& table,
                                                  const AdoptionOptions& options) = 0;
  /// Begins the adoption, or goes on with the one that was begun.
  [[nodiscard]] virtual Result<Adopted> apply(const AdoptionPlan& plan,
                                              const AdoptionOptions& options,
                                              const AdoptionLocks& locks, const Says& says) = 0;
  /// Removes the trigger; what was forwarded stays in the log.
  [[nodiscard]] virtual Result<Adopted> undo(const AdoptionRow& adopted, const AdoptionLocks& locks,
                                             const Says& says) = 0;
};

/// The adoptions that have not ended; empty on a store that cannot adopt tables.
[[nodiscard]] Result<std::vector<AdoptionRow>> open_adoptions(const StoreOptions& options);

/// Fails on a store that cannot adopt tables.
[[nodiscard]] Result<std::unique_ptr<Adopter>> open_adopter(const StoreOptions& options);

}  // namespace outbox::store
