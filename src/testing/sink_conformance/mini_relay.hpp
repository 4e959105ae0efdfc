// The relay's side of the sink contract, as small as it can be: hands over in order, takes
// outcomes, and after a failure drains, opens again and resends from the earliest message that was
// not acked, under new tokens. To a sink that is not gapless it sends one message of a key at a
// time, and after a failure none of that key. Fails the test when a message gets no outcome, two
// outcomes, or one without being sent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <outbox/sink.hpp>
#include <outbox/sink_conformance.hpp>
#include <set>
#include <string>
#include <vector>

namespace outbox::conformance {

/// The places of the messages that arrived, in the order of arrival. Fails the test on one that was
/// never sent.
[[nodiscard]] std::vector<std::size_t> places(const std::vector<Arrived>& arrived,
                                              const Load& load);

/// Each message of the load arrived, and of each key the first arrivals are in order. Messages in
/// `except` did not arrive.
void expect_complete_and_ordered(const std::vector<std::size_t>& arrived, const Load& load,
                                 const std::vector<std::size_t>& except = {});

class MiniRelay {
 public:
  struct Failure {
    std::size_t place{0};
    Outcome outcome;
  };

  MiniRelay(Sink& sink, const Load& load);
  MiniRelay(const MiniRelay&) = delete;
  MiniRelay& operator=(const MiniRelay&) = delete;
  ~MiniRelay();

  /// Hands over the next messages that are neither acked nor in flight, at most `most`; returns how
  /// many were taken. Like the relay, offers them again for some time while the sink takes nothing
  /// although nothing is in flight.
  std::size_t offer(std::size_t most);
  /// Hands over until the sink takes no more or nothing is left, without receiving outcomes.
  void offer_all();
  /// Hands over while the sink takes anything; receives outcomes only when it takes no more. Ends
  /// when everything is taken, or something failed.
  void press_on(std::size_t batch);
  void receive();
  /// Waits until nothing is in flight; false when `limit` passed first.
  [[nodiscard]] bool drain(std::chrono::milliseconds limit = std::chrono::seconds(30));
  /// Delivers `batch` messages at a time, over as many failures as it takes, until so many are
  /// acked in all; then nothing is in flight. False when `limit` passed first.
  [[nodiscard]] bool deliver_first(std::size_t count, std::size_t batch,
                                   std::chrono::milliseconds limit = std::chrono::seconds(60));
  /// Delivers everything, over as many failures as it takes. A rejected message is left out.
  /// `on_failure` runs after the drain, before the sink is opened again.
  [[nodiscard]] bool deliver(std::chrono::milliseconds limit = std::chrono::seconds(60),
                             const std::function<void()>& on_failure = {});
  /// After a failure: start again from the earliest message that was not acked.
  void rewind();

  [[nodiscard]] std::size_t in_flight() const { return in_flight_.size(); }
  [[nodiscard]] std::size_t acked() const { return acked_count_; }
  [[nodiscard]] bool is_acked(std::size_t place) const { return state_[place] == State::acked; }
  [[nodiscard]] const std::vector<Failure>& failures() const { return failures_; }
  /// How many failures left open whether the message arrived.
  [[nodiscard]] std::size_t in_doubt() const;
  [[nodiscard]] std::vector<std::size_t> rejected() const;
  [[nodiscard]] std::size_t reopened() const { return reopened_; }

 private:
  enum class State { ready, in_flight, acked, rejected };
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool may_offer(std::size_t place, bool gapless) const;
  void settle(const Outcome& outcome);
  void wait_for_bell();
  [[nodiscard]] bool reopen(Clock::time_point until);

  Sink& sink_;
  const Load& load_;
  std::vector<State> state_;
  std::map<Token, std::size_t> in_flight_;
  std::set<std::string> keys_held_;  ///< In flight, or behind a failure. Not of a gapless sink.
  std::vector<Failure> failures_;
  std::size_t acked_count_{0};
  std::size_t next_{0};
  std::size_t reopened_{0};
  Token last_token_{0};
  bool failed_{false};
  std::vector<Outcome> outcomes_;

  std::mutex mutex_;
  std::condition_variable bell_;
  bool rung_{false};
};

}  // namespace outbox::conformance
