// The relay's side of a store, as small interfaces. Each part has a connection of its own and is used by one thread at a
// time, unless it says otherwise. PostgreSQL: src/store/postgres. SQLite: src/store/sqlite.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/duration.hpp>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/subscription.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/cursor.hpp"

namespace outbox::store {

struct StoreOptions {
  std::string url;
  std::string schema{"outbox"};
  std::string application{"outbox"};  ///< Shown in the server's list of connections.
};

/// What an event costs in memory beside its payload, its headers and its other texts.
inline constexpr std::size_t kEventOverhead = 256;

/// What to read next for a group of subscriptions that stand at the same place.
struct PageRequest {
  Cursor cursor;
  std::size_t rows{1000};
  std::size_t bytes{
      std::size_t{8}
      << 20U};  ///< The page ends earlier once its events pass this; at least one row.
  /// The next request will probably be for the page after this one: the reader may begin with it.
  bool ahead{false};
  /// Take this snapshot (with its bound) as the end of a new pair instead of the present. Only with a drained cursor.
  std::shared_ptr<const Pair> until{};
};

/// Rows of the log, in order, matching a filter or not.
struct Page {
  std::shared_ptr<const Pair> pair;
  std::int64_t from{0};      ///< The position before this page; 0: the pair begins here.
  std::int64_t position{0};  ///< The position after it.
  bool drained{false};       ///< The pair ends with this page.
  bool caught_up{false};     ///< There was nothing more when this was read.
  std::vector<EventView> events;
  std::size_t bytes{0};  ///< Payloads, headers and other texts, with kEventOverhead for each event.
  std::shared_ptr<const void> storage;  ///< Owns what `events` point into.
};

/// Reads pages. A fetch has two halves, so that the next one runs while the last one is worked on.
class LogReader {
 public:
  LogReader() = default;
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;
  LogReader(LogReader&&) = delete;
  LogReader& operator=(LogReader&&) = delete;
  virtual ~LogReader() = default;

  /// Prepares for reading from these cursors; before the first start(). PostgreSQL writes its mark here.
  [[nodiscard]] virtual Status begin(std::span<const Cursor> cursors) = 0;
  /// Sends a request; finish() must follow before the next.
  [[nodiscard]] virtual Status start(const PageRequest& request) = 0;
  /// Waits for the page.
  [[nodiscard]] virtual Result<Page> finish() = 0;
  /// Waits until everything visible in the newest s2 that this reader took itself would survive a crash of the database
  /// (P3). Must be called, and have succeeded, before that pair's events are handed to a sink and before the pair's s2 is
  /// used as a new s1, empty pairs included.
  [[nodiscard]] virtual Status wait_durable() = 0;
  /// SQL statements sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

enum class Durability : std::uint8_t { eventual, flushed };

/// Progress: loads cursors, appends settlements. Never updates.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;
  virtual ~Progress() = default;

  /// The newest cursor of every lane, grouped. A subscription without one is an error, never a start.
  [[nodiscard]] virtual Result<std::vector<Strand>> load(std::int32_t subscription) = 0;
  /// Appends the rows in one transaction.
  [[nodiscard]] virtual Status append(std::span<const Settlement> rows, Durability durability) = 0;
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

/// Which relay may deliver. One owner for all lanes.
class Membership {
 public:
  struct Standing {
    bool owner{false};
    std::int64_t generation{0};
    std::string other;  ///< When somebody else owns: who, for the log.
  };

  Membership() = default;
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  Membership(Membership&&) = delete;
  Membership& operator=(Membership&&) = delete;
  virtual ~Membership() = default;

  /// Registers this relay, or renews it, and takes the lanes when nobody alive owns them. Taking over raises the
  /// generation and appends a claim for every subscription, in one flushed transaction.
  [[nodiscard]] virtual Result<Standing> keep(std::chrono::milliseconds lease) = 0;
  /// The owner's process ran on this machine and is gone, or it has given the lanes back: keep() would succeed now.
  /// Cheap; called often while waiting.
  [[nodiscard]] virtual Result<bool> vacant() = 0;
  /// Gives the lanes back and leaves.
  [[nodiscard]] virtual Status leave() = 0;
};

/// Stored as text; do not change the words.
enum class SubscriptionState : std::uint8_t { active, paused, stopped };
[[nodiscard]] const char* to_string(SubscriptionState state) noexcept;

struct SubscriptionRow {
  std::int32_t id{0};
  SubscriptionSpec spec;
  std::int32_t config_version{1};
  SubscriptionState state{SubscriptionState::active};
  std::string reason;                       ///< Why it is paused or stopped.
  std::optional<std::int64_t> stopped_seq;  ///< The event that stopped it.
  std::string stopped_event;                ///< Its id.
  std::string trouble;  ///< Why it does not get on although it is active; empty: nothing is known.
  std::string trouble_since;  ///< RFC 3339.
};

/// What `status` shows beside a subscription.
struct SubscriptionProgress {
  std::int32_t id{0};
  std::int64_t generation{0};
  std::int64_t pending{
      0};  ///< Events committed and not settled (of all types), at most `pending_limit`.
  bool pending_capped{false};  ///< There are more.
  // By add_totals() only, last_settled_at as well.
  std::int64_t acked{
      0};  ///< Since the beginning. What a relay settled that had lost its lanes does not count.
  std::int64_t filtered{0};
  std::string last_settled_at;       ///< RFC 3339; empty: never.
  std::string oldest_pending_at;     ///< created_at of the oldest unsettled event; empty: none.
  std::chrono::microseconds lag{0};  ///< The age of that event, by the store's clock.

  /// So many events were looked at that a filter which matches none of them is likely a mistake.
  [[nodiscard]] bool matches_nothing() const noexcept {
    return acked == 0 && filtered >= kManyFiltered;
  }
  static constexpr std::int64_t kManyFiltered = 1000;

  /// `pending` was counted up to one more than the limit, which tells "so many" from "more".
  void cap_pending(std::int64_t limit) noexcept {
    pending_capped = pending > limit;
    pending = std::min(pending, limit);
  }
};

struct RelayRow {
  std::string id;
  std::string name;
  bool owner{false};
  bool alive{false};
  std::int64_t generation{0};
  std::string heartbeat_at;
};

/// Subscriptions and the state of the whole, for people and for the relay's keeper.
class Catalog {
 public:
  Catalog() = default;
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;
  Catalog(Catalog&&) = delete;
  Catalog& operator=(Catalog&&) = delete;
  virtual ~Catalog() = default;

  /// Which outbox this is: a random name that migrate() gave it. When its tables or its file were removed and made anew, it
  /// is another one.
  [[nodiscard]] virtual Result<std::string> identity() = 0;
  [[nodiscard]] virtual Result<std::vector<SubscriptionRow>> subscriptions() = 0;
  /// Creates it with its first cursor row, or changes it (config_version grows), in one transaction. True: something
  /// changed. A `start` of an existing subscription is not looked at.
  [[nodiscard]] virtual Result<bool> apply(const SubscriptionSpec& spec) = 0;
  /// A stopped one stays stopped, with its reason.
  [[nodiscard]] virtual Status pause(std::string_view name, std::string_view reason) = 0;
  [[nodiscard]] virtual Status resume(std::string_view name) = 0;
  // The relay's own. They count only while the lanes are owned under this generation: a relay that was thought dead must
  // not stop what its successor delivers.

  /// An event was rejected. Nothing is skipped; the subscription waits for resume. False: it is gone, the generation is over,
  /// or somebody else holds a row, for whom this does not wait.
  [[nodiscard]] virtual Result<bool> stop(std::int32_t id, std::int64_t generation,
                                          std::string_view reason, std::int64_t seq,
                                          const EventId& event) = 0;
  /// What is the matter with an active subscription, for people; empty: nothing any more. Waits for nobody: what cannot be
  /// told now is told the next time, since subscriptions() shows what stands there.
  [[nodiscard]] virtual Status tell(std::int32_t id, std::int64_t generation,
                                    std::string_view trouble) = 0;
  [[nodiscard]] virtual Result<SubscriptionProgress> progress(const SubscriptionRow& subscription,
                                                              std::int64_t pending_limit) = 0;
  /// From the newest settlement, which carries them.
  [[nodiscard]] virtual Status add_totals(SubscriptionProgress& progress) = 0;
  [[nodiscard]] virtual Result<std::vector<RelayRow>> relays() = 0;
};

/// Wakes an idle reader. wait() may be interrupted from any thread; the rest is the reader's.
class Wakeup {
 public:
  enum class Wake : std::uint8_t { notified, timeout, interrupted };

  Wakeup() = default;
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  Wakeup(Wakeup&&) = delete;
  Wakeup& operator=(Wakeup&&) = delete;
  virtual ~Wakeup() = default;

  /// True: every commit from now on will wake; poll once more, then wait(). False: writers are in flight or it is not
  /// to be had; keep polling.
  [[nodiscard]] virtual Result<bool> arm() = 0;
  [[nodiscard]] virtual Status disarm() = 0;
  [[nodiscard]] virtual Result<Wake> wait(Duration longest) = 0;
  virtual void interrupt() noexcept = 0;
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

/// Work that keeps the store healthy: partitions ahead of the writers (PostgreSQL), checkpoints (SQLite).
class Maintenance {
 public:
  Maintenance() = default;
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;
  Maintenance(Maintenance&&) = delete;
  Maintenance& operator=(Maintenance&&) = delete;
  virtual ~Maintenance() = default;

  /// What was done, for the log; empty: nothing was due.
  [[nodiscard]] virtual Result<std::string> run() = 0;
};

/// Writes events: for the command line and the benchmarks. Applications use outbox/postgres.hpp and outbox/sqlite.hpp.
class Writer {
 public:
  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  Writer(Writer&&) = delete;
  Writer& operator=(Writer&&) = delete;
  virtual ~Writer() = default;

  /// All of them in one transaction, or none. Ids in the order of the events.
  [[nodiscard]] virtual Result<std::vector<EventId>> write(std::span<const Event> events) = 0;
};

/// Schema: what a store is now, and bringing it to what this program needs.
struct SchemaState {
  int version{0};  ///< 0: there is none.
  int wanted{0};
  std::string
      edited;  ///< The first migration that differs from the one that was applied; empty: none.
};

/// One outbox in one database. Parts hold what they need of it; it may be destroyed before them. Any thread.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Store(Store&&) = delete;
  Store& operator=(Store&&) = delete;
  virtual ~Store() = default;

  /// Safe to run twice and from two processes at once. Returns the names of the migrations applied.
  [[nodiscard]] virtual Result<std::vector<std::string>> migrate() = 0;
  [[nodiscard]] virtual Result<SchemaState> schema_state() = 0;
  /// Reachable, primary, schema neither too old nor too new, lineage, sequence: refuses with what to do.
  [[nodiscard]] virtual Status check() = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<LogReader>> reader() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Progress>> progress() = 0;
  /// `relay` stays the same when a relay comes back after it lost its connection: then it takes its own lanes again at
  /// once, with a new generation, so that nothing it wrote before can count late. One at a time with the same id.
  [[nodiscard]] virtual Result<std::unique_ptr<Membership>> membership(std::string relay_name,
                                                                       const EventId& relay) = 0;
  /// A relay of its own.
  [[nodiscard]] Result<std::unique_ptr<Membership>> membership(std::string relay_name) {
    return membership(std::move(relay_name), EventId::generate());
  }
  [[nodiscard]] virtual Result<std::unique_ptr<Catalog>> catalog() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Wakeup>> wakeup(bool armed) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Maintenance>> maintenance() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Writer>> writer() = 0;
};

/// Chooses the store by the scheme of the URL: postgresql://, postgres:// or a conninfo string with '='; sqlite:PATH.
/// Opens nothing yet.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(StoreOptions options);

/// The SQL of the migrations, for `outbox migrate --print`.
[[nodiscard]] Result<std::string> print_migrations(const StoreOptions& options);

}  // namespace outbox::store
