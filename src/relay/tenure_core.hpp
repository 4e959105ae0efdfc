// What the tenure loop decides: which lanes of which groups this relay takes, keeps or gives back,
// what it does next and when, and what a failure means. Pure: it starts no thread, waits for
// nothing, asks no store, and knows no time but what it is told. Drivers: tenure_loop.cpp in a
// relay, tests/sim/groups/process.cpp in the simulation (docs/design/groups.md, "The cores").
//
// Threads: one thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <utility>

#include "base/backoff.hpp"
#include "relay/assignment.hpp"
#include "relay/configuration.hpp"
#include "relay/trust_deadline.hpp"
#include "store/ownership.hpp"

namespace outbox::relay {

/// How often the tenure loop does what. The simulation has shorter times.
struct TenurePace {
  /// The pause between two looks while lanes that this relay should have are not free.
  std::chrono::nanoseconds vacancy_check{std::chrono::milliseconds(100)};
  std::chrono::nanoseconds update{std::chrono::seconds(1)};
  std::chrono::nanoseconds maintain{std::chrono::seconds(30)};
  /// A failure after a tenure of this length starts a new back-off.
  std::chrono::nanoseconds sound_tenure{std::chrono::seconds(2)};
  BackoffPolicy reconnect{.first = std::chrono::milliseconds(50),
                          .longest = std::chrono::seconds(5)};
};

/// What the driver does next.
struct TenureAction {
  enum class Kind : std::uint8_t {
    look,            ///< Read the fleet. The answer is looked().
    leave,           ///< End the loops of the group in order.
    change,          ///< Change the lanes of the group to these. The answer is changed().
    forget_retries,  ///< Of the group, forget what retries have delivered: its lanes were lost.
    wait,            ///< Other relays have all lanes: close the sinks.
    begin,           ///< Open what delivery needs.
    apply,           ///< Write the configuration of the group to the store.
    update,          ///< Have the loops follow the store and the holdings.
    maintain,        ///< Run the maintenance of the store.
    report,          ///< Report the error of the last action. Delivery goes on.
    sleep,           ///< Wait until this time, or until the bell rings.
    end,  ///< End the tenure: in order, or with the error, after which nothing is written.
  };
  Kind kind{Kind::sleep};
  std::string group{};
  store::LaneMask lanes{0};
  store::LaneMask of_others{0};  ///< Of `change`: the lanes that other relays had at the last look.
  TimePoint until{};
  std::optional<Error> error{};
  /// Of `wait`: the name of a relay that has lanes, or "". Unset if that was said before.
  std::optional<std::string> owner{};
  bool compares{false};  ///< Of `wait`: compare the configuration with the store.
};

class TenureCore {
 public:
  /// The arguments outlive the core. Of the configuration it asks which groups there are, and which
  /// were applied.
  TenureCore(const store::RelayIdentity& identity, const Configuration& configuration,
             const TrustDeadline& trust, const TenurePace& pace = {})
      : identity_(identity), configuration_(configuration), trust_(trust), pace_(pace) {}

  // ---- from one tenure to the next

  /// The relay starts. The jitter of its pauses comes from the seed.
  void start(std::uint64_t seed);
  /// The outbox in the store at the beginning of a tenure. Returns whether the tenure before had
  /// another one.
  [[nodiscard]] bool replaces_outbox(const std::string& outbox);
  /// A tenure begins, with a relay that is registered. What the one before held counts no more.
  void begin_tenure(TimePoint now);
  struct BackOff {
    bool was_sound{false};    ///< The tenure had worked: the failure is the first of an outage.
    bool close_sinks{false};  ///< Another relay may have the lanes.
    std::chrono::nanoseconds pause{0};
  };
  /// The tenure has ended with an error, or could not begin. `has_settled`: it has settled
  /// something.
  [[nodiscard]] BackOff back_off(bool has_settled, TimePoint now);

  // ---- the driver's loop in a tenure: tells what has happened, asks for the next action, carries
  // it out, until this is the end

  /// A stop was requested. The tenure ends in order before the next round.
  void stop() { stopping_ = true; }
  /// The connections, the lease or the trust in it are lost: the tenure ends with the error before
  /// the next round.
  void lose(const Error& error);
  /// A loop has something for an update.
  void ring() { rung_ = true; }
  /// What was asked for last is done, unless failed() was called.
  [[nodiscard]] TenureAction next(TimePoint now);
  void looked(store::Fleet fleet);
  /// What the relay holds now; nullopt if another relay changes lanes at this moment.
  void changed(const std::optional<store::Holding>& holding);
  /// What was asked for last has failed.
  void failed(const Error& error);

  /// What the relay holds of each group.
  [[nodiscard]] const Holdings& holdings() const { return holdings_; }

 private:
  enum class Look : std::uint8_t { none, due, asked, settled };
  enum class Update : std::uint8_t { none, due, asked };
  using Part = void (TenureCore::*)(TimePoint now);

  // The parts of a round. A part that asks for something is called again once that is done.
  void begin_round(TimePoint now);
  void look(TimePoint now);
  void settle_shares(TimePoint now);
  void wait_for_others(TimePoint now);
  void end_look(TimePoint now);
  void deliver(TimePoint now);
  void maintain(TimePoint now);
  void sleep(TimePoint now);
  static constexpr std::array<Part, 8> kRound{
      &TenureCore::begin_round,     &TenureCore::look,     &TenureCore::settle_shares,
      &TenureCore::wait_for_others, &TenureCore::end_look, &TenureCore::deliver,
      &TenureCore::maintain,        &TenureCore::sleep};

  void ask(TenureAction action) { next_.push_back(std::move(action)); }
  void end(const Error& error) { ask({.kind = TenureAction::Kind::end, .error = error}); }
  void settle_share(const store::Group& group);
  [[nodiscard]] std::deque<store::Group> served_groups() const;
  [[nodiscard]] bool has_lost_retries(const store::Group& group);
  [[nodiscard]] std::optional<Error> loss(const store::Group& group) const;
  [[nodiscard]] bool is_up_to_date(const store::Group& group, store::LaneMask wanted) const;
  [[nodiscard]] const std::string* group_to_apply() const;

  const store::RelayIdentity& identity_;
  const Configuration& configuration_;
  const TrustDeadline& trust_;
  const TenurePace pace_;

  // From one tenure to the next.
  std::string outbox_;  ///< The identity of the outbox in the store; empty until it is read.
  Holdings holdings_;
  /// What the tenure before held of each group, until the store shows whether another relay has had
  /// lanes of it since.
  Holdings held_before_;
  /// While the relay waits, the configuration is not compared again before this time.
  TimePoint compare_at_{};
  std::uint64_t seed_{0};
  int failures_{0};  ///< The failures of this outage.
  bool said_waiting_{false};
  bool stopping_{false};

  // In a tenure.
  bool rung_{false};
  bool delivers_{false};  ///< The last update that worked was one with lanes.
  std::optional<Error> lost_;
  std::optional<TimePoint> begun_at_;  ///< When the relay began to deliver.
  TimePoint look_at_{};
  TimePoint update_at_{};
  TimePoint maintain_at_{};

  // In a round.
  TimePoint round_at_{};  ///< When the round began.
  std::size_t part_{0};
  std::deque<TenureAction> next_;  ///< What was decided and not yet asked for.
  TenureAction asked_{};           ///< What was asked for last.
  store::Fleet fleet_;
  std::deque<store::Group> groups_;  ///< The groups whose lanes are not settled.
  Holdings held_before_look_;
  Look look_{Look::none};
  Update update_{Update::none};
  bool short_of_lanes_{false};  ///< Some lanes that this relay should have are not free yet.
};

}  // namespace outbox::relay
