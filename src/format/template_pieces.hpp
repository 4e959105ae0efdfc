// The parts of a template, each on its own: for texts in which the values of fields must be written in another way than the text
// around them (percent-encoded, escaped), or are not allowed everywhere. Pure.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "format/template.hpp"

namespace outbox::format {

struct TemplatePiece {
  std::string
      text;  ///< Of a field as it is written, "{json:email}"; else the characters themselves.
  std::optional<Template> field{};  ///< None: it is text.
};

/// Errors are those of Template::compile().
[[nodiscard]] Result<std::vector<TemplatePiece>> template_pieces(std::string_view what,
                                                                 std::string_view text);

}  // namespace outbox::format
