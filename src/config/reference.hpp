// References in string values: ${env:NAME} and ${file:PATH} stand for what is there, so that secrets need not stand in the
// configuration. $${ is a plain ${.
#pragma once

#include <functional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::config {

/// True when there is something to resolve.
[[nodiscard]] bool has_references(const std::string& text);

/// What is left when all references are taken out.
[[nodiscard]] std::string without_references(std::string_view text);

/// Replaces all references. Relative paths count from `directory`. A file that others may read is refused; one line end at
/// its end is left out. Messages name the reference, never what it holds.
[[nodiscard]] Result<std::string> resolve(const std::string& text, const std::string& directory);

/// What to write for a value: given the text before its reference, the text after it, and the value.
using Fit =
    std::function<std::string(std::string_view before, std::string_view after, std::string_view)>;
/// The same; each value is made to fit where it stands.
[[nodiscard]] Result<std::string> resolve(const std::string& text, const std::string& directory,
                                          const Fit& fit);

}  // namespace outbox::config
