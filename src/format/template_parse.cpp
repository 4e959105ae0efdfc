// Compiles templates; template.cpp renders them.
#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/text_rules.hpp"
#include "format/template.hpp"

namespace outbox::format {
namespace {

constexpr std::string_view kHeaderField = "header:";
constexpr std::string_view kJsonField = "json:";
constexpr std::string_view kDefaultFilter = "default:";

}  // namespace

class TemplateParser {
 public:
  TemplateParser(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  Result<Template> parse() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool doubled = at_ + 1 < text_.size() && text_[at_ + 1] == c;
      if (c == '}' && !doubled)
        return error(at_, "'}' without '{'", "write }} for the character itself");
      if (c == '{' && !doubled) {
        OUTBOX_TRY(placeholder());
        continue;
      }
      literal_.push_back(c);
      at_ += c == '{' || c == '}' ? 2 : 1;
    }
    end_literal();
    Template made;
    made.parts_ = std::move(parts_);
    return made;
  }

 private:
  using Field = Template::Field;
  using Filter = Template::FilterKind;

  static constexpr std::array<std::pair<std::string_view, Field>, 10> kFields{{
      {"aggregate_type", Field::aggregate_type},
      {"aggregate_id", Field::aggregate_id},
      {"event_type", Field::event_type},
      {"id", Field::id},
      {"seq", Field::seq},
      {"content_type", Field::content_type},
      {"created_at", Field::created_at},
      {"occurred_at", Field::occurred_at},
      {"header:NAME", Field::header},
      {"json:PATH", Field::json},
  }};
  static constexpr std::array<std::pair<std::string_view, Filter>, 5> kFilters{{
      {"lower", Filter::lower},
      {"upper", Filter::upper},
      {"kebab", Filter::kebab},
      {"snake", Filter::snake},
      {"default:TEXT", Filter::otherwise},
  }};

  tl::unexpected<Error> error(std::size_t at, const std::string& message, std::string hint) const {
    return fail(Errc::invalid_argument,
                std::string(what_) + ": " + message + " at position " + std::to_string(at + 1),
                std::move(hint));
  }

  void end_literal() {
    if (!literal_.empty())
      parts_.push_back(
          {.field = Field::literal, .text = std::exchange(literal_, {}), .filters = {}});
  }

  /// Parses {FIELD|FILTER|FILTER}, from the opening brace through the closing one.
  Status placeholder() {
    end_literal();
    const std::size_t close = text_.find_first_of("{}", at_ + 1);
    if (close == std::string_view::npos || text_[close] == '{') {
      return error(at_, "'{' without '}'", "write {{ for the character itself");
    }
    std::size_t begin = at_ + 1;
    const auto next_word = [&] {
      const std::size_t end = std::min(close, text_.find('|', begin));
      return text_.substr(begin, end - begin);
    };
    Template::Part part;
    std::string_view word = next_word();
    OUTBOX_TRY(field(word, begin, part));
    for (begin += word.size(); begin < close; begin += word.size()) {
      ++begin;  // Skips the '|'.
      word = next_word();
      OUTBOX_TRY(filter(word, begin, part));
    }
    parts_.push_back(std::move(part));
    at_ = close + 1;
    return {};
  }

  Status field(std::string_view name, std::size_t at, Template::Part& part) const {
    if (name.substr(0, kHeaderField.size()) == kHeaderField) {
      part.field = Field::header;
      part.text = name.substr(kHeaderField.size());
      if (event::is_token(part.text)) return {};
      return error(at, "bad header name " + in_quotes(part.text),
                   "write {header:NAME}, for example {header:tenant}");
    }
    if (name.substr(0, kJsonField.size()) == kJsonField) {
      part.field = Field::json;
      part.text = name.substr(kJsonField.size());
      if (is_path(part.text)) return {};
      return error(at, "bad path " + in_quotes(part.text),
                   "write names and numbers between dots, for example {json:lines.0.sku}");
    }
    if (name == "header") return error(at, "unknown field 'header'", "write {header:NAME}");
    if (name == "json") return error(at, "unknown field 'json'", "write {json:PATH}");
    const auto found = find(kFields, "field", name, at);
    if (!found) return tl::unexpected(found.error());
    part.field = *found;
    return {};
  }

  Status filter(std::string_view name, std::size_t at, Template::Part& part) const {
    if (name.substr(0, kDefaultFilter.size()) == kDefaultFilter) {
      part.filters.push_back({Filter::otherwise, std::string(name.substr(kDefaultFilter.size()))});
      return {};
    }
    if (name == "default") return error(at, "unknown filter 'default'", "write default:TEXT");
    const auto found = find(kFilters, "filter", name, at);
    if (!found) return tl::unexpected(found.error());
    part.filters.push_back({*found});
    return {};
  }

  static bool is_path(std::string_view path) {
    return !path.empty() && path.front() != '.' && path.back() != '.' &&
           path.find("..") == std::string_view::npos;
  }

  template <class Value, std::size_t count>
  Result<Value> find(const std::array<std::pair<std::string_view, Value>, count>& table,
                     const std::string& what, std::string_view name, std::size_t at) const {
    std::array<std::string_view, count> known;
    for (std::size_t i = 0; i < count; ++i) {
      known[i] = table[i].first;
      if (known[i] == name) return table[i].second;
    }
    return error(at, name.empty() ? "missing " + what : "unknown " + what + " " + in_quotes(name),
                 did_you_mean(name, known));
  }

  std::string_view what_;
  std::string_view text_;
  std::size_t at_{0};
  std::string literal_;
  std::vector<Template::Part> parts_;
};

Result<Template> Template::compile(std::string_view what, std::string_view text) {
  return TemplateParser(what, text).parse();
}

}  // namespace outbox::format
