#include "cli/replay_archive.hpp"

#include <fmt/format.h>

#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cli/exit.hpp"
#include "cli/progress.hpp"
#include "event/time_text.hpp"
#include "store/archive_read.hpp"

namespace outbox::cli {
namespace {

/// The most events that are written in one transaction.
constexpr std::size_t kEventsAtOnce = 500;
constexpr std::size_t kBytesAtOnce = std::size_t{4} << 20U;

class Loader {
 public:
  Loader(store::Replays& replays, std::int64_t replay) : replays_(replays), replay_(replay) {}

  [[nodiscard]] Status add(const store::ArchivedEvent& event) {
    bytes_ += event.payload.size() + event.headers.size();
    events_.push_back(event);
    return events_.size() < kEventsAtOnce && bytes_ < kBytesAtOnce ? Status{} : write();
  }
  [[nodiscard]] Status write() {
    std::vector<EventView> views;
    views.reserve(events_.size());
    for (const auto& event : events_) views.push_back(event.view());
    OUTBOX_TRY(const std::int64_t added, replays_.load(replay_, views));
    added_ += added;
    events_.clear();
    bytes_ = 0;
    return {};
  }
  [[nodiscard]] std::int64_t added() const { return added_; }

 private:
  store::Replays& replays_;
  const std::int64_t replay_;
  std::vector<store::ArchivedEvent> events_;
  std::size_t bytes_{0};
  std::int64_t added_{0};
};

bool was_interrupted(const Status& status) {
  return !status && status.error().code == Errc::cancelled;
}

/// Removes a replay that must not begin, for the reason `why`. If it cannot be removed, the error
/// gives that reason first, and then says what remains.
void remove_replay(store::Replays& replays, std::int64_t id, const Status& why) {
  const auto removed = replays.stop(id, "");
  if (removed) return;
  const std::string reason =
      why ? "the log still has all events that were chosen" : why.error().message;
  throw Failure(was_interrupted(why) ? kInterrupted : kError,
                fmt::format("{}; replay {} has not begun and sends nothing, but it could not be "
                            "removed ({}), and while it exists its subscription can have no other",
                            reason, id, removed.error().message),
                fmt::format("outbox replay --stop {} removes it, once the store can be used", id));
}

}  // namespace

void ReplayCount::add(const EventView& event) {
  const std::pair place{event.seq, event::to_us(event.created_at)};
  ++events;
  if (first == 0 || event.seq < first) std::tie(first, first_us) = place;
  if (event.seq > last) std::tie(last, last_us) = place;
}

ReplayCount count_archive(const std::string& directory, const Chosen& chosen) {
  ReplayCount count;
  Progress progress(Progress::Wanted::on_terminal, 0, "counting");
  std::uint64_t read = 0;
  must(store::read_archive(directory, [&](const store::ArchivedEvent& event) -> Status {
    progress.at(++read);
    if (const EventView view = event.view(); chosen(view)) count.add(view);
    return {};
  }));
  return count;
}

std::int64_t load_archive(const std::string& directory, const Chosen& chosen, store::Replay replay,
                          store::Replays& replays, const Signals& signals) {
  replay.archived = true;
  const std::int64_t id = must(replays.start(replay));
  Loader loader(replays, id);
  Progress progress(Progress::Wanted::on_terminal, 0, "copying the archive");
  std::uint64_t read = 0;
  Status status = store::read_archive(directory, [&](const store::ArchivedEvent& event) -> Status {
    if (signals.asked()) return fail(Errc::cancelled, "interrupted");
    progress.at(++read);
    return chosen(event.view()) ? loader.add(event) : Status{};
  });
  if (status) status = loader.write();
  progress.clear();
  if (status && loader.added() > 0) {
    must(replays.loaded(id));
    return id;
  }
  remove_replay(replays, id, status);
  if (was_interrupted(status))
    throw Failure(kInterrupted, "interrupted while the archive was read; nothing was started");
  must(status);
  throw Failure(kError, "the log still has all events that were chosen",
                "send them without --archive");
}

}  // namespace outbox::cli
