#include "cli/output.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {

namespace {

// See Capture.
thread_local std::string* capture = nullptr;
thread_local std::vector<std::string>* captured_errors = nullptr;
std::string own_name = "outbox";

}  // namespace

Capture::Capture(std::string& into) { capture = &into; }
Capture::Capture(std::string& into, std::vector<std::string>& errors) : Capture(into) {
  captured_errors = &errors;
}
Capture::~Capture() {
  capture = nullptr;
  captured_errors = nullptr;
}

void write_out(std::string_view text) {
  if (capture != nullptr) {
    capture->append(text);
    return;
  }
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

bool flush_out() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

void write_err(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

void print_json(const Json& json) { write_out(write_json(json, {.indent = 2}) + "\n"); }

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json time_or_null(std::optional<std::int64_t> us) {
  return us ? Json(event::time_text(*us)) : Json();
}
Json time_or_null(std::optional<Timestamp> time) {
  return time ? Json(event::time_text(event::to_us(*time))) : Json();
}

void name_program(const std::string& name) { own_name = name; }

void print_error(const std::string& line) {
  if (captured_errors != nullptr) return captured_errors->push_back(plain(line));
  std::string text = plain(own_name + ": " + line);
  while (text.ends_with(' ')) text.pop_back();
  write_err(text + "\n");
}

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = byte < 0x20U || byte == 0x7fU;
    if (control && out.ends_with(' ')) continue;
    out += control ? ' ' : c;
  }
  return out;
}

}  // namespace outbox::cli
