#include "demo/work_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace outbox::demo {

Result<WorkFolder> WorkFolder::make() {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  if (error)
    return fail(Errc::unavailable, "no folder for temporary files: " + error.message(),
                "set TMPDIR");
  std::string path = (parent / "outbox-demo-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    return fail(Errc::unavailable,
                "cannot make a folder in " + parent.string() + ": " + std::strerror(errno),
                "set TMPDIR to a folder that can be written");
  }
  return WorkFolder(path);
}

WorkFolder::~WorkFolder() {
  if (path_.empty() || kept_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace outbox::demo
