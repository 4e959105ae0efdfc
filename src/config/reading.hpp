// The state while one configuration is read: the file, and what was found in it so far.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/setting.hpp"
#include "config/load.hpp"
#include "config/toml.hpp"

namespace outbox::config {

struct Reading {
  std::string file{};
  Problems problems{};
  std::vector<Entry> entries{};
  std::set<std::string> references{};  ///< See Loaded.
  /// Of exclusive settings: which subscription has which value.
  std::map<std::string, std::string> exclusive{};
  bool thorough{false};  ///< See Request.

  void complain(std::string what, std::string path, Position at, std::string hint);
  void complain(const std::string& path, Position at, const Error& error);
  /// The table of a section. Null after a complaint: it is something else.
  [[nodiscard]] toml::table* table(const Member& section, const std::string& path);
  [[nodiscard]] std::string origin(Position at) const;
  /// Relative paths in the file are relative to it.
  [[nodiscard]] std::string directory() const;
  /// A path from the file, made independent of where a program is started.
  [[nodiscard]] std::string anchored(const std::string& path) const;
  /// Records the references in the strings of the value, at every depth; with `resolve` replaces them. False after a complaint about
  /// one that cannot be replaced.
  bool take_references(toml::node& value, const std::string& path, bool resolve);
};

/// Stores the value in the slot. The error says what was expected and what was found.
[[nodiscard]] Status assign(const Setting& setting, Slot slot, const toml::node& value);

/// The text of one setting with its references replaced.
[[nodiscard]] Result<std::string> resolve_setting(const std::string& path, const std::string& text,
                                                  const std::string& directory);

/// How a value is shown: the store's address as it is in effect, without passwords; everything else as it was written, so that
/// nothing that came from a reference is shown.
[[nodiscard]] Json presentable(const Setting& setting, Slot effective, Slot written);

}  // namespace outbox::config
