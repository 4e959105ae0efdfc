#include "sink/smtp/dialogue.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace outbox::sink::smtp {
namespace {

/// How much of an answer is kept: enough for an error, since a server may say much.
constexpr std::size_t kTextBytes = 1000;
constexpr std::size_t kCodeDigits = 3;
constexpr int kWantsLogin = 334;
constexpr int kWantsMail = 354;

std::string_view without_line_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

/// The code of an answer's line; 0 if the line does not begin with one.
int parse_code(std::string_view line) {
  const std::string_view digits = line.substr(0, kCodeDigits);
  if (digits.size() < kCodeDigits || !std::all_of(digits.begin(), digits.end(), is_digit)) return 0;
  int code = 0;
  for (const char digit : digits) code = code * 10 + (digit - '0');
  return code;
}

}  // namespace

void Dialogue::said(Stage stage) {
  stage_ = stage;
  code_ = 0;
  text_.clear();
}

void Dialogue::sent(std::string_view line) {
  line = without_line_end(line);
  if (over_) return;
  if (stage_ == Stage::login && code_ == kWantsLogin) {
    code_ = 0;  // A part of the login may look like a command.
  } else if (line.starts_with("EHLO ") || line.starts_with("HELO ")) {
    said(Stage::hello);
    keywords_.clear();
  } else if (line == "STARTTLS") {
    said(Stage::tls);
  } else if (line.starts_with("AUTH ")) {
    said(Stage::login);
  } else if (line.starts_with("MAIL FROM:")) {
    said(Stage::sender);
  } else if (line.starts_with("RCPT TO:")) {
    said(Stage::recipients);
    ++recipient_;
  } else if (line == "DATA") {
    said(Stage::data);
  } else if (line == "QUIT") {
    over_ = true;
  }
}

void Dialogue::received(std::string_view lines) {
  while (!lines.empty() && !over_) {
    const std::size_t size = std::min(lines.find('\n'), lines.size() - 1) + 1;
    line(without_line_end(lines.substr(0, size)));
    lines.remove_prefix(size);
  }
}

void Dialogue::line(std::string_view line) {
  const int code = parse_code(line);
  if (code == 0) return;
  if (std::exchange(whole_, line.size() == kCodeDigits || line[kCodeDigits] != '-')) text_.clear();
  const std::string_view words = line.substr(std::min(line.size(), kCodeDigits + 1));
  if (!text_.empty() && !words.empty()) text_ += ' ';
  text_ += words.substr(0, kTextBytes - std::min(text_.size(), kTextBytes));
  if (stage_ == Stage::hello) {
    const std::size_t end = std::min(words.find(' '), words.size());
    std::string keyword(words.substr(0, end));
    for (char& c : keyword) c = to_upper(c);
    keywords_.insert_or_assign(std::move(keyword), std::string(trimmed(words.substr(end))));
  }
  if (!whole_) return;
  code_ = code;
  if (stage_ == Stage::data && code == kWantsMail) said(Stage::content);
}

bool Dialogue::offers(std::string_view keyword) const { return keywords_.contains(keyword); }

std::string_view Dialogue::parameters(std::string_view keyword) const {
  const auto found = keywords_.find(keyword);
  return found == keywords_.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace outbox::sink::smtp
