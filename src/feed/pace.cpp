#include "feed/pace.hpp"

#include <algorithm>
#include <utility>

namespace outbox::feed {
namespace {

using Told = store::Wakeup::Told;

}  // namespace

Pace::Step Pace::worked() {
  empty_ = 0;
  pause_ = options_.busy;
  armed_ = false;
  return {.what = Step::What::pause, .pause = options_.busy};
}

Pace::Step Pace::found_nothing() {
  if (armed_) return {.what = Step::What::sleep, .pause = options_.idle};
  if (++empty_ < options_.empty_polls) return {.what = Step::What::pause, .pause = options_.busy};
  if (options_.arm) return {.what = Step::What::arm, .pause = {}};
  pause_ = std::min(pause_ * 2, options_.idle);
  return {.what = Step::What::pause, .pause = pause_};
}

Pace::Step Pace::armed(bool succeeded) {
  armed_ = succeeded;
  if (succeeded) return {.what = Step::What::pause, .pause = {}};
  pause_ = std::min(pause_ * 2, std::min(options_.refused_longest, options_.idle));
  return {.what = Step::What::pause, .pause = pause_};
}

Pace::Step Pace::told(Told told, std::size_t events) {
  (void)worked();
  const auto late = std::exchange(late_, options_.late);
  if (events >= options_.many_events) return {.what = Step::What::pause, .pause = options_.busy};
  if (told == Told::all) return {.what = Step::What::sleep, .pause = options_.idle};
  if (told != Told::late) return {.what = Step::What::pause, .pause = {}};
  const auto longest = std::min(options_.refused_longest, options_.idle);
  late_ = std::min(late * 2, longest);
  return {.what = Step::What::pause, .pause = std::min(late, longest)};
}

void Pace::woken(bool by_commit) {
  armed_ = false;
  pause_ = options_.busy;
  // After a wake-up the writer is likely to write again; after an idle interval one poll is enough.
  empty_ = by_commit ? 0 : options_.empty_polls - 1;
}

}  // namespace outbox::feed
