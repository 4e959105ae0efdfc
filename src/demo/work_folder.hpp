// A folder of our own below the system's folder for temporary files; removed at the end unless it is kept.
#pragma once

#include <filesystem>
#include <outbox/error.hpp>
#include <string>
#include <utility>

namespace outbox::demo {

class WorkFolder {
 public:
  [[nodiscard]] static Result<WorkFolder> make();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  WorkFolder(WorkFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), kept_(other.kept_) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();

  void keep() { kept_ = true; }
  [[nodiscard]] bool kept() const { return kept_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// "outbox-demo-x7Yz12", for what needs a name elsewhere.
  [[nodiscard]] std::string name() const { return path_.filename().string(); }

 private:
  explicit WorkFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  bool kept_{false};
};

}  // namespace outbox::demo
