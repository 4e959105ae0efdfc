// The sources by name. A new source is a folder, its name in CMakeLists.txt and a page in
// docs/sources.
#pragma once

#include <memory>
#include <outbox/consumer.hpp>
#include <outbox/error.hpp>
#include <string_view>
#include <vector>

#include "source/kind.hpp"

namespace outbox::source {

[[nodiscard]] const std::vector<SourceKind>& kinds();
/// Null if there is no such source.
[[nodiscard]] const SourceKind* find_kind(std::string_view name);
/// The names of all sources with commas, for messages.
[[nodiscard]] std::string kind_names();
/// Makes the source of a consumer, not yet open.
[[nodiscard]] Result<std::unique_ptr<Source>> make_source(const ConsumerSpec& spec);
/// What the broker says of what the consumer reads. Nothing is changed there.
[[nodiscard]] Result<Inspection> inspect(const ConsumerSpec& spec);

}  // namespace outbox::source
