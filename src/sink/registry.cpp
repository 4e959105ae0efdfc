#include "sink/registry.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox::sink {
namespace {

/// The name for sinks that an application passes to its relay.
constexpr std::string_view kCustom = "custom";

Error no_such_sink(const std::string& name) {
  if (auto error = not_in_this_build(name)) return std::move(*error);
  std::vector<std::string_view> known;
  for (const SinkKind& kind : kinds()) known.push_back(kind.name);
  known.push_back(kCustom);
  return fail(Errc::invalid_argument, "sink: \"" + name + "\" is not known",
              did_you_mean(name, known))
      .value();
}

/// The kind of a subscription's sink that is not an application's.
Result<const SinkKind*> kind_for(const SubscriptionSpec& spec) {
  if (spec.sink == kCustom) {
    return fail(Errc::invalid_argument,
                "subscription \"" + spec.name + "\": its sink comes from the application",
                "pass one with Relay::use() before start()");
  }
  const SinkKind* const kind = find_kind(spec.sink);
  if (kind == nullptr) return fail(no_such_sink(spec.sink));
  return kind;
}

}  // namespace

std::optional<Error> not_in_this_build(const std::string& name) {
  for (const auto& [missing, hint] : not_built()) {
    if (missing == name)
      return fail(Errc::unsupported, "sink: " + quote(name) + " is not in this build of outbox",
                  hint)
          .value();
  }
  return std::nullopt;
}

const SinkKind* find_kind(std::string_view name) {
  const auto found = std::find_if(kinds().begin(), kinds().end(),
                                  [&](const SinkKind& kind) { return kind.name == name; });
  return found == kinds().end() ? nullptr : &*found;
}

void check(const SubscriptionSpec& spec, FieldErrors& errors) {
  if (spec.sink == kCustom) return;
  const SinkKind* const kind = find_kind(spec.sink);
  if (kind == nullptr) return errors.add(no_such_sink(spec.sink));
  kind->check(spec, errors);
}

Status check_settings(const SubscriptionSpec& spec) {
  FieldErrors errors;
  check(spec, errors);
  return errors.status();
}

Result<std::unique_ptr<Sink>> make_sink(const SubscriptionSpec& spec) {
  OUTBOX_TRY(const SinkKind* const kind, kind_for(spec));
  return kind->make(spec);
}

Result<Inspection> inspect(const SubscriptionSpec& spec) {
  OUTBOX_TRY(const SinkKind* const kind, kind_for(spec));
  return kind->inspect(spec);
}

Status check_read_back(const SubscriptionSpec& spec) {
  const SinkKind* const kind = find_kind(spec.sink);
  if (kind == nullptr && spec.sink != kCustom) return fail(no_such_sink(spec.sink));
  if (kind != nullptr && kind->read_back) return {};
  return fail(Errc::unsupported,
              "subscription " + spec.name + ": a " + spec.sink + " sink cannot be read back",
              "let its own tools write one id per line, and pass --delivered FILE instead");
}

Result<ReadParts> read_back(const SubscriptionSpec& spec, const TakeId& take) {
  OUTBOX_TRY(check_read_back(spec));
  auto parts = find_kind(spec.sink)->read_back(spec, take);
  if (!parts) parts.error().message.insert(0, "subscription " + spec.name + ": ");
  return parts;
}

}  // namespace outbox::sink
