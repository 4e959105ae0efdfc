// A file of whole lines: opened for one writer, appended to, undone where a write stopped half-way. Knows nothing of
// events. Not thread-safe.
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

/// The system calls that can fail with a full or broken disk; tests put their own in.
struct Disk {
  ssize_t (*write)(int file, const void* bytes, std::size_t count);
  int (*sync)(int file);
  static const Disk& real();
};

class LineFile {
 public:
  /// `line_start`: how each line begins. What is left of a line after the last line feed must begin so too; otherwise the
  /// file is not one of ours, and is not touched.
  LineFile(std::string path, mode_t mode, std::string_view line_start,
           const Disk& disk = Disk::real());
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  LineFile(LineFile&&) = delete;
  LineFile& operator=(LineFile&&) = delete;
  ~LineFile();

  /// Creates the file if it is not there, locks it, cuts off a line that a crash left unfinished, and what a failed sync
  /// left in doubt.
  [[nodiscard]] Status open();
  /// Was the file at the path replaced (or removed), as log rotation does? Then this one is full and another is to be opened.
  [[nodiscard]] Result<bool> replaced();

  struct Written {
    std::size_t bytes{0};  ///< Whole lines only.
    std::optional<Error> failure;
  };
  /// Appends; `ends` are the offsets in `lines` after each line.
  [[nodiscard]] Written append(std::string_view lines, std::span<const std::size_t> ends);
  /// Makes everything appended durable. When it fails nothing of it may be assumed: close, and open again.
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
  [[nodiscard]] Status cut_torn_line();
  [[nodiscard]] Status truncate(std::uint64_t size);
  [[nodiscard]] Status sync_directory() const;
  [[nodiscard]] Error error(int number, std::string_view what) const;

  const std::string path_;
  const mode_t mode_;
  const std::string line_start_;
  const Disk& disk_;

  int file_{-1};
  Identity identity_;

  std::uint64_t end_{0};     ///< Behind the last whole line.
  std::uint64_t synced_{0};  ///< Up to here it is durable.
  /// Behind a failed sync: the pages may be marked clean without being on disk, so the bytes are written anew.
  struct Doubt {
    Identity identity;
    std::uint64_t from{0};
  };
  std::optional<Doubt> doubt_;
};

}  // namespace outbox::sink
