// References in string values: ${env:NAME} and ${file:PATH} stand for what is there, so that secrets need not stand in the
// configuration. $${ is a plain ${.
#pragma once

#include <outbox/error.hpp>
#include <string>

namespace outbox::config {

/// True when there is something to resolve.
[[nodiscard]] bool has_references(const std::string& text);

/// Replaces all references. Relative paths count from `directory`. A file that others may read is refused; one line end at
/// its end is left out. Messages name the reference, never what it holds.
[[nodiscard]] Result<std::string> resolve(const std::string& text, const std::string& directory);

}  // namespace outbox::config
