// A configuration for one test: a file, variables and flags.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "sink/registry.hpp"
#include "support/temp_dir.hpp"

namespace outbox::config {

class Configuration {
 public:
  explicit Configuration(const std::string& toml, std::vector<Flag> flags = {})
      : request_{.file = folder_.file("outbox.toml"), .flags = std::move(flags)} {
    std::ofstream(*request_.file) << toml;
  }
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;
  Configuration(Configuration&&) = delete;
  Configuration& operator=(Configuration&&) = delete;
  ~Configuration() {
    for (const std::string& name : variables_) unsetenv(name.c_str());
  }

  void set(const std::string& variable, const std::string& value) {
    setenv(variable.c_str(), value.c_str(), 1);
    variables_.push_back(variable);
  }
  Request& request() { return request_; }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.file(name); }

  /// What was loaded; the test fails with the first problem otherwise.
  Loaded loaded() {
    auto all = load(request_);
    if (!all) throw std::runtime_error(all.error().front().text());
    return std::move(*all);
  }
  /// "LINE PATH: ..." of each problem, in order.
  std::vector<std::string> problems() {
    const auto all = load(request_);
    std::vector<std::string> found;
    if (all) return found;
    for (const Problem& problem : all.error())
      found.push_back(std::to_string(problem.at.line) + " " + problem.what +
                      (problem.hint.empty() ? "" : " (" + problem.hint + ")"));
    return found;
  }
  /// What `config show` prints of a setting, and where it comes from.
  std::string shown(const std::string& section, const std::string& key) {
    for (const Entry& entry : loaded().entries) {
      if (entry.section == section && entry.key == key)
        return entry.value.dump() + " " + entry.origin.substr(entry.origin.rfind('/') + 1);
    }
    return "(none)";
  }

 private:
  test::TempDir folder_;
  Request request_;
  std::vector<std::string> variables_;
};

}  // namespace outbox::config

#define OUTBOX_NEEDS_KAFKA_SINK()                                                 \
  if (::outbox::sink::find_kind("kafka") == nullptr) {                            \
    GTEST_SKIP() << "needs a build with Kafka: librdkafka, OUTBOX_WITH_KAFKA=ON"; \
  }                                                                               \
  static_assert(true)
