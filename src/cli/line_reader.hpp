// Lines from a file, a pipe or a terminal, without copying them more than once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace outbox::cli {

class LineReader {
 public:
  /// A longer line cannot be an event: even in base64 the largest payload is shorter.
  static constexpr std::size_t kLongestLine = std::size_t{16} << 20U;

  enum class Next {
    line,
    idle,  ///< No input for a while; there may be more.
    end,
    interrupted,  ///< The other descriptor became readable.
    too_long,     ///< The line is longer than kLongestLine.
    failed,       ///< error() says why.
  };

  /// Reads from `fd`, which the caller owns, until `interrupt_fd` becomes readable.
  LineReader(int fd, int interrupt_fd);

  /// The line without its end (LF or CR LF) is valid until the next call.
  [[nodiscard]] Next next(std::string_view& line);
  [[nodiscard]] std::size_t bytes_read() const { return bytes_read_; }
  [[nodiscard]] int error() const { return error_; }

 private:
  bool take_line(std::string_view& line);
  /// Reads more input. Returns nullopt if there is more, or if the input has ended.
  [[nodiscard]] std::optional<Next> fill();
  void make_room();

  int fd_;
  int interrupt_fd_;
  std::string buffer_;
  std::size_t begin_{0};    ///< The beginning of what next() has not returned yet.
  std::size_t scanned_{0};  ///< The unfinished line has no end before this.
  std::size_t end_{0};      ///< The end of the input in the buffer.
  bool ended_{false};
  std::size_t bytes_read_{0};
  int error_{0};
};

}  // namespace outbox::cli
