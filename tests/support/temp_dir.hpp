// A temporary folder, which is removed at the end unless it is kept.
#pragma once

#include <filesystem>
#include <string>

namespace outbox::test {

class TempDir {
 public:
  explicit TempDir(const std::string& prefix = "outbox-test");
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  void keep() { kept_ = true; }
  [[nodiscard]] bool kept() const { return kept_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Its name, like "outbox-test-x7Yz12", for other things that need a unique name.
  [[nodiscard]] std::string name() const { return path_.filename().string(); }

 private:
  std::filesystem::path path_;
  bool kept_{false};
};

}  // namespace outbox::test
