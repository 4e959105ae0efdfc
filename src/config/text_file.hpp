// Reading a whole small file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <outbox/error.hpp>
#include <string>

namespace outbox::config {

struct TextFile {
  std::string text;
  mode_t mode{0};  ///< Of the very file that was read.
};

/// The message of an error is the bare reason ("No such file or directory"); the caller names the file.
[[nodiscard]] Result<TextFile> read_text_file(const std::string& path, std::size_t most_bytes);
/// From a descriptor, which stays the caller's.
[[nodiscard]] Result<TextFile> read_text(int fd, std::size_t most_bytes);

}  // namespace outbox::config
