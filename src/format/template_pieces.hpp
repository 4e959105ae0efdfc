// The parts of a template, each on its own, for texts in which values of fields must be
// percent-encoded or escaped, unlike the text around them, or are not allowed everywhere. Pure.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "format/template.hpp"

namespace outbox::format {

struct TemplatePiece {
  /// A field as it is written, such as "{json:email}"; otherwise the characters themselves.
  std::string text;
  std::optional<Template> field{};  ///< nullopt for text.
};

/// The errors are those of Template::compile().
[[nodiscard]] Result<std::vector<TemplatePiece>> template_pieces(std::string_view what,
                                                                 std::string_view text);

}  // namespace outbox::format
