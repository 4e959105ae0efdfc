#include "format/template_pieces.hpp"

#include <utility>

#include "base/error.hpp"

namespace outbox::format {

Result<std::vector<TemplatePiece>> template_pieces(std::string_view what, std::string_view text) {
  // The whole is compiled first, because its errors name positions in it.
  OUTBOX_TRY(Template::compile(what, text));
  std::vector<TemplatePiece> pieces;
  while (!text.empty()) {
    const bool doubled = text.starts_with("{{") || text.starts_with("}}");
    const bool field = !doubled && text.starts_with('{');
    const std::size_t size = field ? text.find('}') + 1 : doubled ? 2 : 1;
    const std::string_view piece = text.substr(0, size);
    text.remove_prefix(size);
    if (field) {
      OUTBOX_TRY(Template compiled, Template::compile(what, piece));
      pieces.push_back({.text = std::string(piece), .field = std::move(compiled)});
      continue;
    }
    if (pieces.empty() || pieces.back().field) pieces.push_back({});
    pieces.back().text += piece.back();
  }
  return pieces;
}

}  // namespace outbox::format
