// A file of JSON lines.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "demo/destination.hpp"

namespace outbox::demo {
namespace {

class FileReading final : public Reading {
 public:
  explicit FileReading(std::string path) : path_(std::move(path)) {}

  /// Whole lines only: the end of the file may be a line that is just being written, or was when its writer was killed.
  Status next(const Each& each) override {
    std::ifstream file(path_, std::ios::binary);
    if (!file) return {};  // nothing was delivered yet
    file.seekg(offset_);
    std::string line;
    while (std::getline(file, line) && !file.eof()) {
      offset_ += static_cast<std::streamoff>(line.size()) + 1;
      each(parse_order(line));
    }
    return {};
  }

 private:
  const std::string path_;
  std::streamoff offset_{0};
};

class FileDestination final : public Destination {
 public:
  explicit FileDestination(std::string path) : path_(std::move(path)) {}

  Status open() override { return {}; }

  SubscriptionSpec subscription() const override {
    SubscriptionSpec spec{.name = kSubscription, .sink = "file"};
    spec.sink_settings["path"] = path_;
    return spec;
  }

  Result<std::unique_ptr<Reading>> read() const override {
    return std::make_unique<FileReading>(path_);
  }

  Status clear() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    return {};
  }

  std::string place() const override { return path_; }

 private:
  const std::string path_;
};

}  // namespace

std::unique_ptr<Destination> make_file_destination(std::string path) {
  return std::make_unique<FileDestination>(std::move(path));
}

}  // namespace outbox::demo
