#include "support/temp_dir.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "support/failure.hpp"

namespace outbox::test {

TempDir::TempDir(const std::string& prefix) {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  if (error)
    give_up(Errc::unavailable, "no folder for temporary files: " + error.message(), "set TMPDIR");
  std::string path = (parent / (prefix + "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) {
    give_up(Errc::unavailable,
            "cannot make a folder in " + parent.string() + ": " + std::strerror(errno),
            "set TMPDIR to a folder that can be written");
  }
  path_ = path;
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (!kept_) std::filesystem::remove_all(path_, ignored);
}

}  // namespace outbox::test
