// A file of complete lines with one writer; a partly written line is removed. The class knows
// nothing of events and is not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <span>
#include <string>
#include <string_view>

namespace outbox::sink {

/// The system calls that fail on a full or broken disk; tests replace them.
struct Disk {
  ssize_t (*write)(int file, const void* bytes, std::size_t count);
  int (*sync)(int file);
  static const Disk& real();
};

class LineFile {
 public:
  /// Each line begins with `line_start`. A file whose incomplete last line begins otherwise is not
  /// ours and is not changed.
  LineFile(std::string path, mode_t mode, std::string_view line_start,
           const Disk& disk = Disk::real());
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  ~LineFile();

  /// Creates the file if necessary, locks it, and removes an incomplete last line and doubtful
  /// bytes of a failed sync.
  [[nodiscard]] Status open();
  /// Whether the file at the path was replaced or removed (log rotation); open() opens the new one.
  [[nodiscard]] Result<bool> replaced();

  struct Written {
    std::size_t bytes{0};  ///< Counts complete lines only.
    std::optional<Error> failure;
  };
  /// Appends the lines; `ends` has the offset in `lines` after each line.
  [[nodiscard]] Written append(std::string_view lines, std::span<const std::size_t> ends);
  /// Makes all lines durable. After an error nothing is known: close the file and open it again.
  [[nodiscard]] Status sync();
  void close() noexcept;
  [[nodiscard]] bool is_open() const { return file_ >= 0; }

 private:
  struct Identity {
    dev_t device{};
    ino_t inode{};
    bool operator==(const Identity&) const = default;
  };

  [[nodiscard]] Status open_at_path();
  [[nodiscard]] Status lock();
  [[nodiscard]] Status check_kind();
  [[nodiscard]] Status remove_torn_line();
  [[nodiscard]] Status truncate(std::uint64_t size);
  [[nodiscard]] Status sync_directory() const;
  [[nodiscard]] Error error(int number, std::string_view what) const;

  const std::string path_;
  const mode_t mode_;
  const std::string line_start_;
  const Disk& disk_;

  int file_{-1};
  Identity identity_;

  std::uint64_t end_{0};     ///< The offset after the last complete line.
  std::uint64_t synced_{0};  ///< The offset up to which the file is durable.
  /// What a failed sync left in doubt. The kernel may have marked its pages clean without writing
  /// them, so these bytes are written again.
  struct Doubt {
    Identity identity;
    std::uint64_t from{0};
  };
  std::optional<Doubt> doubt_;
};

}  // namespace outbox::sink
