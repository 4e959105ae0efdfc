#include "cli/line_reader.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace outbox::cli {
namespace {

constexpr std::size_t kFirstCapacity = std::size_t{1} << 20U;
constexpr int kIdleMs = 50;

}  // namespace

LineReader::LineReader(int fd, int interrupt_fd)
    : fd_(fd), interrupt_fd_(interrupt_fd), buffer_(kFirstCapacity, '\0') {}

LineReader::Next LineReader::next(std::string_view& line) {
  while (!take_line(line)) {
    if (end_ - begin_ > kLongestLine) return Next::too_long;
    if (ended_) return Next::end;
    if (const auto nothing = fill()) return *nothing;
  }
  return Next::line;
}

/// The last line may lack its end.
bool LineReader::take_line(std::string_view& line) {
  const std::string_view input = std::string_view(buffer_).substr(0, end_);
  const std::size_t feed = input.find('\n', scanned_);
  scanned_ = std::min(feed, end_);
  if (feed == std::string_view::npos && (!ended_ || begin_ == end_)) return false;
  line = input.substr(begin_, scanned_ - begin_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  begin_ = scanned_ = std::min(scanned_ + 1, end_);
  return true;
}

std::optional<LineReader::Next> LineReader::fill() {
  std::array<pollfd, 2> fds{{{.fd = interrupt_fd_, .events = POLLIN, .revents = 0},
                             {.fd = fd_, .events = POLLIN, .revents = 0}}};
  const int ready = poll(fds.data(), fds.size(), kIdleMs);
  if (ready == 0) return Next::idle;
  if (ready > 0 && fds[0].revents != 0) return Next::interrupted;
  ssize_t got = ready;
  if (ready > 0) {
    make_room();
    got = read(fd_, buffer_.data() + end_, buffer_.size() - end_);
  }
  if (got < 0) {
    error_ = errno;
    return errno == EINTR || errno == EAGAIN ? Next::idle : Next::failed;
  }
  ended_ = got == 0;
  end_ += static_cast<std::size_t>(got);
  bytes_read_ += static_cast<std::size_t>(got);
  return std::nullopt;
}

/// Moves the unfinished line to the front. The buffer grows if the line fills it.
void LineReader::make_room() {
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  scanned_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
}

}  // namespace outbox::cli
