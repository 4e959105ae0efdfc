// Decides whether events wait for standbys (PublishAfter::replicated). Pure.
//
//   passing:   the standbys have what was asked for
//   waiting:   they do not; it is asked again after a pause that grows
//   without:   they did not for longer than the limit: events go out, and each new snapshot asks
//              once, until the standbys have caught up
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "store/delivery.hpp"

namespace outbox::feed {

class StandbyGate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// With a limit of 0 events wait for as long as it takes.
  StandbyGate(store::Standbys standbys, std::chrono::nanoseconds limit)
      : standbys_(std::move(standbys)), limit_(limit) {}

  /// What a caller tells the user.
  enum class News {
    none,
    waits,    ///< Events have been waiting for a while.
    without,  ///< They go out without the standbys from now on.
    over,     ///< The standbys have caught up, after one of the others.
  };
  struct Answer {
    bool pass{true};
    News news{News::none};
  };
  [[nodiscard]] Answer take(const store::Replication& found, TimePoint now);

  [[nodiscard]] const store::Standbys& standbys() const { return standbys_; }
  /// When to ask again while events wait.
  [[nodiscard]] std::chrono::nanoseconds pause() const { return pause_; }
  /// What was found last, in words: "1 of 2 standbys has flushed them, 2 are connected".
  [[nodiscard]] std::string words() const;

 private:
  const store::Standbys standbys_;
  const std::chrono::nanoseconds limit_;
  store::Replication found_{};
  std::chrono::nanoseconds pause_{0};
  std::optional<TimePoint> since_{};  ///< Since when events wait.
  bool told_{false};                  ///< That they wait.
  bool without_{false};
};

}  // namespace outbox::feed
