#include "source/registry.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/text.hpp"
#include "sink/registry.hpp"

namespace outbox::source {
namespace {

Result<const SourceKind*> kind_for(const ConsumerSpec& spec) {
  const SourceKind* const kind = find_kind(spec.source);
  if (kind == nullptr) {
    if (const auto missing = sink::not_in_this_build(spec.source)) return tl::unexpected(*missing);
    return bad_field("source", in_quotes(spec.source) + " is no source", "one of " + kind_names());
  }
  for (const std::string& setting : kind->of_sending) {
    if (spec.settings.contains(setting))
      return bad_field(spec.source + "." + setting,
                       "says how to send, and a consumer sends nothing", "remove it");
  }
  return kind;
}

}  // namespace

const SourceKind* find_kind(std::string_view name) {
  const auto& all = kinds();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const SourceKind& kind) { return kind.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string kind_names() {
  std::string names;
  for (const SourceKind& kind : kinds()) names.append(names.empty() ? "" : ", ").append(kind.name);
  return names;
}

Result<std::unique_ptr<Source>> make_source(const ConsumerSpec& spec) {
  OUTBOX_TRY(const SourceKind* const kind, kind_for(spec));
  return kind->make(spec);
}

Result<Inspection> inspect(const ConsumerSpec& spec) {
  OUTBOX_TRY(const SourceKind* const kind, kind_for(spec));
  return kind->inspect(spec);
}

}  // namespace outbox::source
