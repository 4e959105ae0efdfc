// Which events may be sent while an event that kills the relay is looked for: a range of them at a
// time, recorded before it is sent. Pure. docs/design/trials.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "relay/delivery_core.hpp"
#include "store/ownership.hpp"

namespace outbox::relay {

class TrialGate {
 public:
  /// So many deaths at one place put events on trial. So many deaths while one event was alone in
  /// flight park that event.
  static constexpr std::size_t kDeaths = 2;
  /// The number of the retries among the sources of events; the strands follow.
  static constexpr std::size_t kRetries = 0;

  /// `window` is how many events a relay may have sent and not settled when it dies. If it is 0,
  /// nothing is tried.
  explicit TrialGate(std::size_t window = 0) : window_(window) {}

  // ---- before the run begins

  /// What is written when the run of a strand begins.
  struct Beginning {
    std::size_t range{0};            ///< How many events are on trial.
    std::vector<std::int64_t> keep;  ///< Generations of former runs that still matter.
  };
  /// Adds a strand whose cursor stands at `place`, and what former runs left on its lanes, the
  /// newest first.
  [[nodiscard]] Beginning add(std::size_t source, std::vector<store::FormerRun> runs,
                              const std::string& place);

  // ---- during the run

  /// Whether the stream is on trial.
  [[nodiscard]] bool on() const { return on_; }
  /// Whether some events may not simply be sent. If this is false, next() need not be called.
  [[nodiscard]] bool active() const { return limits() || !lone_.empty(); }
  /// The source that is asked first for what it would send.
  [[nodiscard]] std::size_t turn() const;
  struct Step {
    enum class Kind : std::uint8_t {
      send,  ///< Send `count` of the events.
      wait,  ///< Wait until nothing is in flight and all is settled.
      /// Record that a range of `count` events begins with the first one. Then call recorded().
      record,
      /// `count` relays died of the first event. It is not sent, and the trial is over: call end().
      culprit,
      over,  ///< The trial is over: call end(), and ask again.
    };
    Kind kind{Kind::send};
    std::size_t count{0};
  };
  /// What to do with the events that a source would send next. `rests` says that nothing is in
  /// flight and all is settled.
  [[nodiscard]] Step next(std::size_t source, std::span<const DeliveryCore::Send> sends,
                          bool rests);
  /// The store has the range, and takes the runs of these generations for dead. Returns false if
  /// too few of them are left, because relays have come back. The trial is over then.
  [[nodiscard]] bool recorded(std::size_t source, std::int64_t seq,
                              const std::vector<std::int64_t>& dead);
  void sent(std::size_t events) { sent_ += range_ > 0 ? events : 0; }
  /// Whether the open range is sent.
  [[nodiscard]] bool used_up() const { return range_ > 0 && sent_ >= range_; }
  /// Ends the trial. Returns the generations of former runs that still matter: those that died of a
  /// parked event.
  [[nodiscard]] std::vector<std::int64_t> end();

  /// How many events have been sent on trial, and how many are at most.
  [[nodiscard]] std::size_t passed() const { return survived_ + sent_; }
  [[nodiscard]] std::size_t most() const { return window_; }

 private:
  /// An event that was alone in flight when relays died.
  struct Lone {
    std::set<std::int64_t> generations;  ///< The generations of the runs that died.
    bool parked{false};
    bool fresh{false};  ///< Whether the newest death is not counted yet.
  };

  [[nodiscard]] bool limits() const { return on_ || range_ > 0 || asked_; }
  void continue_range(const store::FormerRun& newest, std::size_t source);
  [[nodiscard]] std::size_t room(std::size_t source,
                                 std::span<const DeliveryCore::Send> sends) const;
  void survived();
  [[nodiscard]] std::optional<std::size_t> take_culprit(std::int64_t seq);
  [[nodiscard]] std::size_t next_range(std::size_t source, std::int64_t seq) const;

  std::size_t window_;
  bool on_{false};
  std::map<std::int64_t, Lone> lone_;  ///< By seq. These events are sent alone.
  std::set<std::int64_t> deaths_;      ///< The generations for whose deaths there is a trial.
  std::int64_t newest_{0};  ///< The generation of the newest run that died during a trial.

  std::size_t suspected_{kRetries};  ///< The source of the range in which a relay died.
  std::size_t suspects_{0};          ///< How many events are left of that range.
  std::size_t growing_{1};           ///< The size of the next range of other events.
  std::size_t survived_{0};

  // The open range.
  std::size_t range_{0};  ///< 0 if none is open.
  std::size_t source_{0};
  std::int64_t seq_{0};  ///< The seq of its first event.
  std::size_t sent_{0};
  /// Outside of a trial: the source that has an event which must be sent alone. The other sources
  /// send nothing until it was sent.
  std::optional<std::size_t> asked_;
};

}  // namespace outbox::relay
