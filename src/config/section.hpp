// A section of the file while it is read: its settings as they were written and are in effect.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "config/reading.hpp"
#include "config/settings.hpp"

namespace outbox::config {

template <typename Spec>
class Section {
 public:
  /// `title` is what the shown configuration calls it.
  Section(std::string path, std::string title, Position at, bool resolve, Reading& reading)
      : reading_(reading),
        path_(std::move(path)),
        title_(std::move(title)),
        at_(at),
        resolve_(resolve) {}

  Spec effective;
  Spec written;  ///< As it was before references were replaced.

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string make_path(const std::string& key) const { return path_ + "." + key; }

  void read(const SettingRow<Spec>& row, const Member& member) {
    const std::string path = make_path(member.key);
    const Position at = positions_[member.key] = position(*member.value);
    if (auto status = assign(row.setting, row.slot(written), *member.value); !status)
      return reading_.complain(path, at, status.error());
    if (!reading_.take_references(*member.value, path, resolve_)) return;
    (void)assign(row.setting, row.slot(effective), *member.value);
  }

  void complain_about_unknown(const Member& member, const std::vector<std::string_view>& known) {
    const std::string path = make_path(member.key);
    reading_.complain("unknown setting " + path, path, member.at, did_you_mean(member.key, known));
  }

  /// The place of the setting, or else of the section.
  [[nodiscard]] Position find_position(const std::string& key) const {
    const auto found = positions_.find(key);
    return found == positions_.end() ? at_ : found->second;
  }

  void add_entry(const SettingRow<Spec>& row) {
    const auto at = positions_.find(row.setting.name);
    reading_.entries.push_back(
        {.section = title_,
         .key = row.setting.name,
         .value = presentable(row.setting, row.slot(effective), row.slot(written)),
         .origin = at == positions_.end() ? "default" : reading_.origin(at->second)});
  }

 private:
  Reading& reading_;
  const std::string path_;
  const std::string title_;
  const Position at_;
  const bool resolve_;
  std::map<std::string, Position> positions_;
};

}  // namespace outbox::config
