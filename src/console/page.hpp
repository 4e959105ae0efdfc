// The files of the page, which the build puts into the program (cmake/EmbedPage.cmake).
#pragma once

#include <span>
#include <string_view>

namespace outbox::console {

struct PageFile {
  std::string_view path;   ///< As it is asked for: "/" or "/assets/index-1a2b3c.js".
  std::string_view type;   ///< Its media type.
  std::string_view bytes;  ///< Compressed with gzip.
};

/// Empty if the program was built without the page.
[[nodiscard]] std::span<const PageFile> page();

}  // namespace outbox::console
