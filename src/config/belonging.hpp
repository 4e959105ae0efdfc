// Finds where a setting belongs that was written at the wrong level of the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sink/kind.hpp"

namespace outbox::config {

/// Whether the sink has a setting of this name, or several that begin with a name without dots and
/// a dot: `create` stands for create.partitions.
[[nodiscard]] bool has_setting(const sink::SinkKind& sink, std::string_view name);

/// The sinks that have the setting, such as "file or http"; empty if none has.
[[nodiscard]] std::string sinks_with(std::string_view name);

/// What to write instead of a setting that no section of its kind has; nullopt if no other section
/// has it either. `key` is the name without its section.
[[nodiscard]] std::optional<std::string> where_it_belongs(std::string_view key);

}  // namespace outbox::config
