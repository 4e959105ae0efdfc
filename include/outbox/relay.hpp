// outbox/relay.hpp: delivers events from the log to sinks, inside your own process. The verb
// `outbox relay` is a thin wrapper around this class.
//
//   outbox::RelayOptions options{.store_url = "postgresql://localhost/shop"};
//   auto relay = outbox::Relay::create(options);
//   if (!relay) throw outbox::Exception(relay.error());
//   (*relay)->use("mails", std::make_unique<MailSink>());   // its sink is "custom"
//   if (auto status = (*relay)->start(); !status) throw outbox::Exception(status.error());
//   ...
//   (*relay)->stop(std::chrono::seconds(10));
//
// Relays share the work. A subscription belongs to a group, and the relays that serve the group
// divide its lanes (slices of the keys) evenly among themselves. A subscription with sink =
// "custom" is a group of its own, served by the relays that were given its sink: a service with a
// relay inside runs beside `outbox relay`, and replicas of the service share its subscriptions.
//
// Threads: Any thread. use(), start() and stop() wait for each other.
// Lifetime: destroying it stops it at once; what was in flight is delivered again by the next
//           relay. A sink that does not return from a call is leaked with its thread.
// Errors: create() and start() check everything that can be checked; errors say what failed, where,
//         and a hint.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <outbox/error.hpp>
#include <outbox/histogram.hpp>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <outbox/time.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace outbox {

/// When events may go out.
enum class PublishAfter : std::uint8_t {
  flushed,  ///< When a crash of the database cannot take them back.
  /// When standbys have flushed them too, so that the promotion of one of them cannot take them
  /// back either. PostgreSQL only.
  replicated,
};

/// How a relay learns of new events. It reads them from the table in each case.
enum class Feed : std::uint8_t {
  poll,       ///< It polls, and sleeps when there is nothing to do; wake_up lets commits wake it.
  wal,        ///< PostgreSQL's write-ahead log tells of commits; where it cannot be had, as `poll`.
  automatic,  ///< The same, and what is missing for `wal` is no trouble.
};

struct RelayOptions {
  /// Where the store is: postgresql://..., or sqlite:PATH. Required.
  std::string store_url;
  /// PostgreSQL schema of the outbox tables. Default: outbox.
  std::string schema{"outbox"};
  /// The name of this relay in `outbox status`. Default: host name and process id.
  std::string name{};
  /// The groups whose subscriptions this relay delivers, also "custom:NAME" and "file:NAME".
  /// Subscriptions whose sink was given by use() are always served. Default: empty, which means
  /// all.
  std::vector<std::string> groups{};
  /// Subscriptions to create or change when this relay first gets lanes of their group: at its
  /// start or when it takes over. Other subscriptions in the store are delivered as they are.
  /// Default: none.
  std::vector<SubscriptionSpec> subscriptions{};
  /// Rows of the log per fetch. Unit: rows, 1 to 10000. Default: 1000.
  std::size_t page_rows{1000};
  /// Events fetched but not settled, per subscription. Unit: events, at least page_rows. Default:
  /// 10000.
  std::size_t window_events{10000};
  /// Bytes fetched but not settled, per subscription. Unit: bytes. Default: 16 MiB.
  std::size_t window_bytes{std::size_t{16} << 20U};
  /// Longest time an acked event stays unsettled, while the store can be written to. Default: 50
  /// ms.
  std::chrono::milliseconds settle_interval{50};
  /// Settle earlier when this many events are done. Unit: events. Default: 1000.
  std::size_t settle_events{1000};
  /// How long this relay keeps its lanes without a heartbeat. Default: 15 s.
  std::chrono::milliseconds lease{15000};
  /// Longest pause between polls while idle. Default: 1 s.
  std::chrono::milliseconds idle_poll{1000};
  /// Use the armed wake-up (PostgreSQL: needs a connection that is not pooled by transaction).
  /// Default: true.
  bool wake_up{true};
  /// When events may go out. Default: PublishAfter::flushed.
  PublishAfter publish_after{PublishAfter::flushed};
  /// With PublishAfter::replicated: how many standbys must have flushed an event. Default: 1.
  std::size_t replicated{1};
  /// The standbys that must all have flushed an event, by their application_name; then `replicated`
  /// does not count. Default: empty, which means any.
  std::vector<std::string> replicated_by{};
  /// How long events wait for standbys. Then they go out without them, with an error in the log,
  /// until the standbys have caught up. With 0 they wait for as long as it takes. Default: 0.
  std::chrono::milliseconds replicated_timeout{0};
  /// How it learns of new events. `wal` needs wal_level = logical, a login with REPLICATION and
  /// `outbox migrate --with-wal` (docs/design/feed.md); SQLite has none. Default: poll.
  Feed feed{Feed::poll};
  /// How long events stay in the log after they were written. Then they are removed if all
  /// subscriptions have passed them. With 0 they are removed as soon as all have passed them.
  /// Default: 7 days.
  std::chrono::milliseconds retention{std::chrono::hours(24 * 7)};
  /// A folder for files of the events that are removed. Default: none.
  std::string archive{};
  /// A subscription that keeps more than this from being removed is reported as a problem. Nothing
  /// is removed because of it. Unit: bytes. Default: 10 GiB.
  std::size_t quota{std::size_t{10} << 30U};
  /// How long rows of the history stay, which say what was done in each interval. With 0 this relay
  /// writes and removes none. Default: 14 days.
  std::chrono::milliseconds history{std::chrono::hours(24 * 14)};
  /// The length of the intervals. With 0 this relay writes no history. Default: 1 min.
  std::chrono::milliseconds history_interval{std::chrono::minutes(1)};
  /// How long the inbox remembers messages that consumers have received. What a broker delivers
  /// again later happens again. Default: 30 days.
  std::chrono::milliseconds inbox_retention{std::chrono::hours(24 * 30)};
  /// How long it stays recorded who changed what (outbox audit). Default: 400 days.
  std::chrono::milliseconds audit_keep{std::chrono::hours(24 * 400)};
};

/// What a subscription of a running relay is doing.
struct SubscriptionReport {
  std::string name;
  /// "delivering", "opening", "draining" (a send has failed), "backing-off" or "stopping"; "paused"
  /// or "stopped" as the store says; or "broken", if it cannot be started.
  std::string state;
  /// Why it makes no progress; empty after the destination has taken an event.
  std::string reason;
  // Since the subscription was last started here:
  std::uint64_t delivered{0};     ///< Events that were acked, as was everything before them.
  std::uint64_t filtered{0};      ///< Events that its filter does not match.
  std::uint64_t parked{0};        ///< Events that were set aside.
  std::uint64_t in_window{0};     ///< Events that are fetched and not settled.
  std::uint64_t window_bytes{0};  ///< The size of their pages.
  std::uint64_t in_flight{0};     ///< Events that the sink has and has not reported on.
  /// Whether others in the network can read or change what is sent.
  bool insecure{false};
  std::uint64_t settlements{0};  ///< Rows of progress that were given to the store.
};

/// What became of what a relay sent, and how long it took. The numbers grow only.
struct SendTotals {
  /// The types of events that are told apart in `failures`; all others count as "other".
  static constexpr std::size_t kMostTypes = 100;

  /// By Outcome::Kind. An event that is sent again has several outcomes.
  std::array<std::uint64_t, 6> outcomes{};
  /// Sends that were not acked, by event type.
  std::map<std::string, std::uint64_t, std::less<>> failures{};
  std::uint64_t reconnects{0};  ///< How often the sink was opened again.
  Timestamp last_delivery{};    ///< When the last event was acked; 1970: none was.
  DurationHistogram latency{};  ///< From an event's created_at to its ack, without replays.
  DurationHistogram send{};     ///< From handing an event to the sink to its outcome.
  DurationHistogram batch{};    ///< From reading a page to its settlement.

  [[nodiscard]] std::uint64_t count(Outcome::Kind kind) const {
    return outcomes[static_cast<std::size_t>(kind)];
  }
  SendTotals& operator+=(const SendTotals& more);
};

/// What a relay has done to a subscription since the Relay object was made. The numbers grow only,
/// through reconnects and changes of lanes; each event counts when its settlement is written, and
/// in `sends` when it has its outcome.
struct SubscriptionTotals {
  std::string name;
  std::string sink;            ///< The name of its sink.
  std::uint64_t delivered{0};  ///< Events that the sink has taken, retries and replays included.
  std::uint64_t filtered{0};   ///< Events that the subscription's filter does not match.
  std::uint64_t parked{0};     ///< Events that were set aside.
  std::uint64_t dead{0};       ///< Parked events that are not sent again until a person decides.
  /// The parked events, by ParkReason.
  std::array<std::uint64_t, 6> parked_for{};
  SendTotals sends{};

  /// Adds those of another relay, or of an earlier subscription of the name.
  SubscriptionTotals& operator+=(const SubscriptionTotals& more);
};

/// What a worker has done to the tasks of one type in one queue since the Worker object was made.
struct TaskTotals {
  std::string queue;
  std::string type;
  // How runs ended:
  std::uint64_t completed{0};
  std::uint64_t failed{0};  ///< The task runs again.
  std::uint64_t dead{0};    ///< The task does not run again until a person decides.
  std::uint64_t cancelled{0};
  std::uint64_t snoozed{0};
  DurationHistogram duration{};  ///< From the beginning of a run to its end.
  /// From when a task was due to the beginning of its first run, by the clock of this machine.
  DurationHistogram pickup{};
};

struct RelayReport {
  bool owner{false};            ///< Whether it has lanes. If not, it waits for other relays.
  std::int64_t generation{0};   ///< The newest generation of its lanes.
  std::uint64_t fetches{0};     ///< Pages that it has read since it got lanes.
  std::uint64_t statements{0};  ///< SQL statements of reader and settler since then.
  std::string last_error;       ///< The newest error of the store; empty while it works.
  std::vector<SubscriptionReport> subscriptions;
  /// All subscriptions that this relay has delivered, also those that others deliver now.
  std::vector<SubscriptionTotals> totals{};
  /// The lanes that it has of each group that it has served.
  std::map<std::string, std::size_t> lanes{};
  /// How often it has taken lanes of a group over from another relay that was taken for dead.
  std::map<std::string, std::uint64_t> takeovers{};
  /// How often reading the log began because a commit woke it, and because the pause was over.
  std::uint64_t wakeups_by_commit{0};
  std::uint64_t wakeups_by_time{0};
  /// How it learns of new events at the moment: "poll" or "wal".
  std::string feed{"poll"};
  /// Why that is not "wal", if the options ask for it; else empty.
  std::string feed_trouble{};
  /// Errors of the store that interrupted it, by class: the first two characters of SQLSTATE, or
  /// SQLite's result code.
  std::map<std::string, std::uint64_t> store_errors{};
  /// Of a worker only.
  std::vector<TaskTotals> tasks{};
  /// Runs of workers that were taken for dead and that this worker gave back, by queue.
  std::map<std::string, std::uint64_t> tasks_recovered{};
  /// When the main loop last went round, which it does about once a second, whether the store and
  /// the destinations work or not. time_point::max() while the relay is not started, or stops.
  std::chrono::steady_clock::time_point progress{std::chrono::steady_clock::time_point::max()};
};

struct StopReport {
  bool drained{false};  ///< Whether everything in flight got its outcome and was settled.
  /// How many events were in flight, or delivered and not settled. They will be delivered again.
  std::uint64_t abandoned{0};
};

/// What a call of Relay::run_once() did. The numbers count what this relay settled during the call
/// in all its subscriptions together: an event counts once for each of them.
struct RunReport {
  /// Whether nothing was pending in the end: everything that was committed before the call is
  /// delivered, filtered or parked, and that is settled. If not, the limit came first.
  bool settled{false};
  /// What was still pending when the limit came, and the newest error of the store. Empty if
  /// `settled`.
  std::string reason;
  /// Events that the sink has taken, also those that were parked before and those of a replay.
  std::uint64_t delivered{0};
  /// Events that the filter of the subscription does not match.
  std::uint64_t filtered{0};
  /// Events that were set aside: rejected, failing and slow events, and the events behind them of
  /// the same key. If such an event is delivered later in the call, it counts there, too. Parked
  /// events are not pending, so the call does not wait for them.
  std::uint64_t parked{0};
  /// Parked events that are not sent again until a person decides (max_attempts).
  std::uint64_t dead{0};
  /// Events that were in flight at the end, or delivered and not settled. They will be delivered
  /// again.
  std::uint64_t abandoned{0};
};

class Relay {
 public:
  /// Validates the options. Opens nothing, starts nothing.
  [[nodiscard]] static Result<std::unique_ptr<Relay>> create(RelayOptions options);

  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  Relay(Relay&&) = delete;
  Relay& operator=(Relay&&) = delete;
  ~Relay();

  /// Gives a sink for the subscription of that name, whose `sink` setting is "custom". Before
  /// start() only.
  Status use(std::string_view subscription, std::unique_ptr<Sink> sink);
  /// Serves the group, and makes the sinks of its other "custom" subscriptions, which need not
  /// exist yet. A thread of the relay calls `make` when such a subscription starts; if it returns
  /// null, the relay does not deliver that subscription. Before start() only.
  using MakeSink =
      std::function<Result<std::unique_ptr<Sink>>(const SubscriptionSpec& subscription)>;
  Status use_for_group(std::string_view group, MakeSink make);

  /// Checks the store (reachable, schema, lineage) and starts the threads. Returns when this relay
  /// has lanes and has applied its subscriptions of those groups. It also returns when other relays
  /// have all lanes; then this relay waits for its share and applies nothing until it gets it. A
  /// second call does nothing; a call after stop() starts it again. A stop that is requested by
  /// `token` acts like request_stop().
  [[nodiscard]] Status start(std::stop_token token = {});

  /// Requests a stop; returns at once.
  void request_stop() noexcept;

  /// Stops fetching, waits at most `grace` for what is in flight, settles it and gives the lanes
  /// back. Takes some seconds more if the store does not answer.
  StopReport stop(std::chrono::milliseconds grace);

  /// Starts, delivers until nothing is pending or `limit` has passed (see RunReport::settled), and
  /// stops. Meant for tests, and for a job that runs now and then. Fails if the relay cannot start,
  /// the store fails, or a subscription is stopped. Can be called repeatedly.
  [[nodiscard]] Result<RunReport> run_once(std::chrono::milliseconds limit);

  [[nodiscard]] RelayReport report() const;

 private:
  struct Impl;
  explicit Relay(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outbox
