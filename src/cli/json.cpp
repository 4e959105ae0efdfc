#include "cli/json.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "cli/output.hpp"
#include "event/json_write.hpp"

namespace outbox::cli {

Json& Json::end() {
  OUTBOX_CHECK(!open_.empty());
  const char closing = open_.back();
  open_.pop_back();
  if (!first_) text_.append("\n").append(2 * open_.size(), ' ');
  text_ += closing;
  first_ = false;
  return *this;
}

Json& Json::key(std::string_view name) {
  separate();
  event::append_json_string(text_, name);
  text_ += ": ";
  after_key_ = true;
  return *this;
}

Json& Json::value(std::string_view text) {
  separate();
  event::append_json_string(text_, text);
  return *this;
}

Json& Json::value(double number) {
  return std::isfinite(number) ? raw(fmt::format("{}", number)) : null();
}

Json& Json::member_or_null(std::string_view name, std::string_view text) {
  key(name);
  return text.empty() ? null() : value(text);
}

void Json::print() const {
  write_out(text_);
  write_out("\n");
}

Json& Json::open(char begin, char finish) {
  separate();
  text_ += begin;
  open_.push_back(finish);
  first_ = true;
  return *this;
}

Json& Json::raw(std::string_view token) {
  separate();
  text_ += token;
  return *this;
}

void Json::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (open_.empty()) return;
  text_.append(first_ ? "\n" : ",\n").append(2 * open_.size(), ' ');
  first_ = false;
}

}  // namespace outbox::cli
