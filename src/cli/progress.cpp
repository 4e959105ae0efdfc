#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "base/mutex.hpp"
#include "base/text.hpp"
#include "base/thread.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace outbox::cli {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{200};
constexpr std::chrono::seconds kInLog{1};

}  // namespace

Progress::Progress(Wanted wanted, std::size_t total_bytes, std::string what)
    : terminal_(is_screen(STDERR_FILENO)),
      on_(wanted == Wanted::always || (wanted == Wanted::on_terminal && terminal_)),
      total_bytes_(total_bytes),
      what_(std::move(what)) {}

bool Progress::is_due() {
  if (!on_) return false;
  const Clock::time_point now = Clock::now();
  if (now - shown_at_ < (terminal_ ? Clock::duration(kOnTerminal) : Clock::duration(kInLog)))
    return false;
  shown_at_ = now;
  return true;
}

void Progress::print(const std::string& line) {
  const std::string text = plain(what_.empty() ? line : what_ + ": " + line);
  write_err(terminal_ ? "\r\x1b[K" + text : "outbox: " + text + "\n");
  visible_ = terminal_;
}

void Progress::at(std::uint64_t events, std::size_t bytes) {
  if (!is_due()) return;
  const auto rate = static_cast<std::int64_t>(static_cast<double>(events) / seconds());
  std::string line = fmt::format("{} event{}, {}/s", with_commas(static_cast<std::int64_t>(events)),
                                 events == 1 ? "" : "s", with_commas(rate));
  if (total_bytes_ > 0) line += fmt::format(", {} %", 100 * bytes / total_bytes_);
  print(line);
}

void Progress::say(const std::string& text) {
  if (is_due()) print(text);
}

void Progress::clear() {
  if (visible_) write_err("\r\x1b[K");
  visible_ = false;
}

double Progress::seconds() const {
  return std::max(1e-9, std::chrono::duration<double>(Clock::now() - start_).count());
}

Waiting::Waiting(std::string what) {
  if (!is_screen(STDERR_FILENO)) return;
  thread_ = start_thread("ob-waiting", [what = std::move(what)](const std::stop_token& over) {
    Mutex mutex;
    std::condition_variable_any wait;
    const MutexLock lock(mutex);
    Progress progress(Progress::Wanted::on_terminal, 0, what);
    while (!over.stop_requested()) {
      (void)wait.wait_for(mutex, over, std::chrono::seconds(1), [] { return false; });
      if (!over.stop_requested())
        progress.say(fmt::format("{} s", static_cast<std::int64_t>(progress.seconds())));
    }
  });
}

}  // namespace outbox::cli
