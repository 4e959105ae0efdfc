// The settings of one sink: checked against what the sink knows, with its defaults filled in. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

#include "sink/registry.hpp"

namespace outbox::sink {

class Settings {
 public:
  /// Refuses an unknown name (naming the nearest known one; unless the sink is free-form), a value of the wrong type, and a
  /// required one that is missing.
  [[nodiscard]] static Result<Settings> read(const SinkInfo& info,
                                             const std::map<std::string, std::string>& given);

  // Of a setting that the sink has; the type is what SettingInfo says.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] std::chrono::microseconds duration(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] bool boolean(std::string_view name) const;

  /// What a free-form sink was given beyond its own settings.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& others() const {
    return others_;
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> others_;
};

}  // namespace outbox::sink
