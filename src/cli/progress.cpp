#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "cli/output.hpp"

namespace outbox::cli {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{200};
constexpr std::chrono::seconds kInLog{1};

}  // namespace

Progress::Progress(bool on, std::size_t total_bytes)
    : on_(on), terminal_(isatty(STDERR_FILENO) == 1), total_bytes_(total_bytes) {}

void Progress::at(std::uint64_t events, std::size_t bytes) {
  if (!on_) return;
  const Clock::time_point now = Clock::now();
  if (now - shown_at_ < (terminal_ ? Clock::duration(kOnTerminal) : Clock::duration(kInLog)))
    return;
  shown_at_ = now;
  const auto rate = static_cast<std::int64_t>(static_cast<double>(events) / seconds());
  std::string line = fmt::format("{} events, {}/s", with_commas(static_cast<std::int64_t>(events)),
                                 with_commas(rate));
  if (total_bytes_ > 0) line += fmt::format(", {} %", 100 * bytes / total_bytes_);
  write_err(terminal_ ? "\r\x1b[K" + line : "outbox: " + line + "\n");
  visible_ = terminal_;
}

void Progress::clear() {
  if (visible_) write_err("\r\x1b[K");
  visible_ = false;
}

double Progress::seconds() const {
  return std::max(1e-9, std::chrono::duration<double>(Clock::now() - start_).count());
}

}  // namespace outbox::cli
