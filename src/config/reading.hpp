// What is shared while one configuration is being read: the file, and what was found wrong and right so far.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/assign.hpp"
#include "config/load.hpp"
#include "config/reference.hpp"
#include "config/secret.hpp"

namespace outbox::config {

struct Reading {
  std::string file{};
  Problems problems{};
  std::vector<Entry> entries{};
  std::map<std::string, std::string> files{};  ///< Of file sinks: which subscription has which.
  bool thorough{false};                        ///< See Request.

  void complain(std::string what, std::string path, Position at, std::string hint) {
    problems.push_back({.what = std::move(what),
                        .path = std::move(path),
                        .where = place(file, at),
                        .at = at,
                        .hint = std::move(hint)});
  }
  void complain(const std::string& path, Position at, const Error& error) {
    complain(path + ": " + error.message, path, at, error.hint);
  }
  [[nodiscard]] std::string origin(Position at) const {
    return file + ":" + std::to_string(at.line);
  }
  /// Where relative paths in the file count from.
  [[nodiscard]] std::string directory() const {
    const std::size_t slash = file.rfind('/');
    return slash == std::string::npos ? std::string() : file.substr(0, slash == 0 ? 1 : slash);
  }
  /// A path from the file, made independent of where a program is started.
  [[nodiscard]] std::string anchored(const std::string& path) const {
    const std::filesystem::path there(path);
    if (path.empty() || there.is_absolute()) return path;
    return std::filesystem::absolute(std::filesystem::path(directory()) / there)
        .lexically_normal()
        .string();
  }
};

/// The text of one setting with its references replaced.
[[nodiscard]] Result<std::string> resolve_setting(const std::string& path, const std::string& text,
                                                  const std::string& directory);

/// The value with its references replaced, at every depth; none after a complaint about `path`.
[[nodiscard]] std::optional<Node> resolve_node(const Node& node, const std::string& path,
                                               Reading& reading);

/// How a value may be shown: of the store's address what is in effect and harmless, of everything else what was written, so that
/// nothing that came from a reference is shown.
[[nodiscard]] std::string presentable(const Setting& setting, Slot effective, Slot written,
                                      Notation notation);

}  // namespace outbox::config
