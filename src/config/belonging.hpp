// Where a setting belongs that was written at the wrong level of the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sink/kind.hpp"

namespace outbox::config {

/// Whether the sink has a setting of this name, or, of a name without dots, several that begin with it and a dot: `create` stands for
/// create.partitions.
[[nodiscard]] bool has_setting(const sink::SinkKind& sink, std::string_view name);

/// The sinks that have it: "file or http"; empty: none.
[[nodiscard]] std::string sinks_with(std::string_view name);

/// What to write instead of a setting that no section of its kind has; none: no other section has it either. `key` is the name without
/// its section.
[[nodiscard]] std::optional<std::string> where_it_belongs(std::string_view key);

}  // namespace outbox::config
