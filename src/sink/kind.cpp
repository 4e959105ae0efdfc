#include "sink/kind.hpp"

#include <algorithm>

#include "base/reference.hpp"
#include "base/text.hpp"

namespace outbox::sink {

const Setting* SinkKind::find(std::string_view setting) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& one) { return one.name == setting; });
  return found == settings.end() ? nullptr : &*found;
}

Given resolve_settings(const std::string& sink, const Texts& settings) {
  Given given;
  for (const auto& [name, text] : settings) {
    auto value = has_references(text) ? resolve(text, {}) : Result<std::string>(text);
    if (value) {
      given.texts.emplace(name, std::move(*value));
    } else {
      given.unresolved.add(std::string(sink).append(".").append(name), value.error());
    }
  }
  return given;
}

void read_setting(const std::string& sink, const Setting& setting, Slot slot, const Texts& given,
                  FieldErrors& errors) {
  const std::string field = sink + "." + setting.name;
  const auto found = given.find(setting.name);
  if (found != given.end()) {
    if (const Status status = assign(setting, slot, found->second); !status)
      errors.add(field, status.error());
  } else if (setting.required) {
    errors.add({field, "is missing", setting.help});
  }
}

FieldError unknown_setting(const std::string& sink, const std::string& name,
                           const std::vector<std::string_view>& known) {
  std::string hint =
      known.empty() ? "sink " + sink + " has no settings" : did_you_mean(name, known);
  return {sink + "." + name, "no such setting", std::move(hint)};
}

}  // namespace outbox::sink
