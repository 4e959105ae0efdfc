// Reading a whole small file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <outbox/error.hpp>
#include <string>

namespace outbox {

struct TextFile {
  std::string text;
  mode_t mode{0};  ///< The mode of the file that was read.
};

/// The error is only the reason ("No such file or directory"); the caller adds the file.
[[nodiscard]] Result<TextFile> read_text_file(const std::string& path, std::size_t most_bytes);
/// Reads from a descriptor that the caller owns.
[[nodiscard]] Result<TextFile> read_text(int fd, std::size_t most_bytes);

}  // namespace outbox
