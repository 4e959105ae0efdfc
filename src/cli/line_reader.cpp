#include "cli/line_reader.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace outbox::cli {
namespace {

constexpr std::size_t kFirstCapacity = std::size_t{1} << 20U;
constexpr int kIdleMs = 50;

}  // namespace

LineReader::LineReader(int fd, int interrupt_fd)
    : fd_(fd),
      interrupt_fd_(interrupt_fd),
      buffer_(new char[kFirstCapacity]),
      capacity_(kFirstCapacity) {}

LineReader::Next LineReader::next(std::string_view& line) {
  while (!take_line(line)) {
    if (end_ - begin_ > kLongestLine) return Next::too_long;
    if (ended_) return Next::end;
    switch (fill()) {
      case Filled::more: break;
      case Filled::nothing: return Next::idle;
      case Filled::end: ended_ = true; break;
      case Filled::interrupted: return Next::interrupted;
      case Filled::failed: return Next::failed;
    }
  }
  return Next::line;
}

/// The last line may lack its end.
bool LineReader::take_line(std::string_view& line) {
  const char* const from = buffer_.get() + scanned_;
  const auto* const stop = static_cast<const char*>(std::memchr(from, '\n', end_ - scanned_));
  if (stop == nullptr && (!ended_ || begin_ == end_)) {
    scanned_ = end_;
    return false;
  }
  const std::size_t line_end =
      stop == nullptr ? end_ : static_cast<std::size_t>(stop - buffer_.get());
  line = std::string_view(buffer_.get() + begin_, line_end - begin_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  begin_ = scanned_ = stop == nullptr ? end_ : line_end + 1;
  return true;
}

LineReader::Filled LineReader::fill() {
  std::array<pollfd, 2> fds{{{.fd = interrupt_fd_, .events = POLLIN, .revents = 0},
                             {.fd = fd_, .events = POLLIN, .revents = 0}}};
  const int ready = poll(fds.data(), fds.size(), kIdleMs);
  if (ready < 0 && errno != EINTR) {
    error_ = errno;
    return Filled::failed;
  }
  if (ready <= 0) return Filled::nothing;
  if (fds[0].revents != 0) return Filled::interrupted;
  make_room();
  const ssize_t got = read(fd_, buffer_.get() + end_, capacity_ - end_);
  if (got == 0) return Filled::end;
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return Filled::nothing;
  if (got < 0) {
    error_ = errno;
    return Filled::failed;
  }
  end_ += static_cast<std::size_t>(got);
  bytes_read_ += static_cast<std::size_t>(got);
  return Filled::more;
}

/// Moves the unfinished line to the front; a line that fills the buffer makes it grow.
void LineReader::make_room() {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    scanned_ -= begin_;
    begin_ = 0;
  }
  if (end_ < capacity_) return;
  std::unique_ptr<char[]> larger(new char[capacity_ * 2]);
  std::memcpy(larger.get(), buffer_.get(), end_);
  buffer_ = std::move(larger);
  capacity_ *= 2;
}

}  // namespace outbox::cli
