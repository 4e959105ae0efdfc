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
  /// Which subscription has which value of an exclusive setting.
  std::map<std::string, std::string> exclusive{};
  bool thorough{false};  ///< See Request.

  void complain(std::string what, std::string path, Position at, std::string hint);
  void complain(const std::string& path, Position at, const Error& error);
  /// The table of a section. If it is something else, complains and returns null.
  [[nodiscard]] toml::table* table(const Member& section, const std::string& path);
  [[nodiscard]] std::string origin(Position at) const;
  /// The folder of the file, to which its relative paths are relative.
  [[nodiscard]] std::string directory() const;
  /// A path from the file, made independent of where a program is started.
  [[nodiscard]] std::string anchored(const std::string& path) const;
  /// Records the references in the strings of the value, at every depth, and with `resolve`
  /// replaces them. If one cannot be replaced, complains and returns false.
  bool take_references(toml::node& value, const std::string& path, bool resolve);
};

/// Stores the value in the slot. The error says what was expected and what was found.
[[nodiscard]] Status assign(const Setting& setting, Slot slot, const toml::node& value);

/// The text of one setting with its references replaced.
[[nodiscard]] Result<std::string> resolve_setting(const std::string& path, const std::string& text,
                                                  const std::string& directory);

/// How a value is shown. The store's address is shown as it is in effect, without passwords, and
/// everything else as it was written, so that nothing behind a reference is shown.
[[nodiscard]] Json presentable(const Setting& setting, Slot effective, Slot written);

}  // namespace outbox::config
