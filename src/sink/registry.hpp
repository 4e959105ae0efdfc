// The sinks by name. A new sink is a folder, its name in CMakeLists.txt and a page in docs/sinks.
#pragma once

#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"
#include "sink/kind.hpp"
#include "sink/read_back.hpp"

namespace outbox::sink {

[[nodiscard]] const std::vector<SinkKind>& kinds();
/// A sink that this build lacks.
struct NotBuilt {
  std::string_view name;
  const char* hint;  ///< What building it takes.
};
[[nodiscard]] const std::vector<NotBuilt>& not_built();
/// Null if there is no such sink.
[[nodiscard]] const SinkKind* find_kind(std::string_view name);
/// The error for a kind that outbox has but this build lacks; its hint is how to build it.
[[nodiscard]] std::optional<Error> not_in_this_build(const std::string& name);

/// Adds what is wrong with the subscription's sink and settings. Opens nothing; passes "custom".
void check(const SubscriptionSpec& spec, FieldErrors& errors);
/// The first error of check(), with its field.
[[nodiscard]] Status check_settings(const SubscriptionSpec& spec);

/// Makes the sink of the subscription, not yet open.
[[nodiscard]] Result<std::unique_ptr<Sink>> make_sink(const SubscriptionSpec& spec);

/// What the subscription's destination is, seen over an open connection, and what its settings
/// promise. Sends no event.
[[nodiscard]] Result<Inspection> inspect(const SubscriptionSpec& spec);

/// Whether the destination of the subscription can be read back. Opens nothing.
[[nodiscard]] Status check_read_back(const SubscriptionSpec& spec);
/// Reads all that the destination holds now.
[[nodiscard]] Result<ReadParts> read_back(const SubscriptionSpec& spec, const TakeId& take);

}  // namespace outbox::sink
