// References in string values: ${env:NAME} is the value of a variable, ${file:PATH} the content of
// a file, so that secrets need not be in the configuration. $${ is a literal ${.
#pragma once

#include <functional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox {

/// Whether there is a reference in the text.
[[nodiscard]] bool has_references(const std::string& text);

/// The text that resolve() turns into this text.
[[nodiscard]] std::string literal(std::string_view text);

/// The text with its references removed.
[[nodiscard]] std::string without_references(std::string_view text);

/// Replaces all references. Relative paths are relative to `directory`. A file that others can read
/// is refused; a line end at its end is dropped. Messages name the reference, never its value.
[[nodiscard]] Result<std::string> resolve(const std::string& text, const std::string& directory);

/// The text with absolute paths in its references, to be resolved anywhere on the machine.
[[nodiscard]] std::string anchored_references(const std::string& text,
                                              const std::string& directory);

/// Encodes a value for its place: the text before its reference, the text after it, and the value.
using Fit =
    std::function<std::string(std::string_view before, std::string_view after, std::string_view)>;
/// Replaces all references, with each value encoded for its place.
[[nodiscard]] Result<std::string> resolve(const std::string& text, const std::string& directory,
                                          const Fit& fit);

}  // namespace outbox
