// The sinks by name. A new sink is one folder beside this file, its name in CMakeLists.txt and one page in docs/sinks.
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
/// Null: no such sink.
[[nodiscard]] const SinkKind* find_kind(std::string_view name);
/// Why there is no such kind, although outbox has it: how to build it is the hint.
[[nodiscard]] std::optional<Error> not_in_this_build(const std::string& name);

/// Everything that is wrong with the sink of the subscription and its settings. Opens nothing. "custom" passes.
void check(const SubscriptionSpec& spec, FieldErrors& errors);
/// The first error of check(), with its field.
[[nodiscard]] Status check_settings(const SubscriptionSpec& spec);

/// Makes the sink of the subscription; open() has not been called.
[[nodiscard]] Result<std::unique_ptr<Sink>> make_sink(const SubscriptionSpec& spec);

/// What the destination of the subscription is, as an open connection sees it, and what its settings promise. Sends no event.
[[nodiscard]] Result<Inspection> inspect(const SubscriptionSpec& spec);

/// Whether the destination of the subscription can be read back. Opens nothing.
[[nodiscard]] Status check_read_back(const SubscriptionSpec& spec);
/// Reads all that it holds now.
[[nodiscard]] Result<ReadParts> read_back(const SubscriptionSpec& spec, const TakeId& take);

}  // namespace outbox::sink
