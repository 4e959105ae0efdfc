// What was said between us and a mail server (RFC 5321), as libcurl shows it line by line: how far
// a mail came, and the last answer. libcurl reports the same code for different stages. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace outbox::sink::smtp {

/// What was sent last.
enum class Stage : std::uint8_t {
  connect,     ///< Nothing was sent: the server speaks first.
  hello,       ///< EHLO or HELO
  tls,         ///< STARTTLS
  login,       ///< AUTH
  sender,      ///< MAIL
  recipients,  ///< RCPT
  data,        ///< DATA
  content,     ///< The mail, which the server has asked for.
};

class Dialogue {
 public:
  void sent(std::string_view line);
  /// Takes one or more lines.
  void received(std::string_view lines);

  [[nodiscard]] Stage stage() const { return stage_; }
  /// The code of the answer to what was sent last; 0 if there is none.
  [[nodiscard]] int code() const { return code_; }
  /// The answer's text; its lines are joined by blanks.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether QUIT was sent.
  [[nodiscard]] bool over() const { return over_; }
  /// The number of the recipient who was named last, from 1.
  [[nodiscard]] std::size_t recipient() const { return recipient_; }
  /// Whether the last answer to EHLO has the keyword ("SMTPUTF8").
  [[nodiscard]] bool offers(std::string_view keyword) const;
  /// What the last answer to EHLO has behind the keyword ("10240000" behind SIZE), or nothing.
  [[nodiscard]] std::string_view parameters(std::string_view keyword) const;

 private:
  void said(Stage stage);
  void line(std::string_view line);

  Stage stage_{Stage::connect};
  int code_{0};
  std::size_t recipient_{0};
  bool whole_{true};  ///< Whether the answer's last line has come.
  bool over_{false};  ///< Whether QUIT was sent, so that what follows does not matter.
  std::string text_;
  /// The keywords with their parameters.
  std::map<std::string, std::string, std::less<>> keywords_;
};

}  // namespace outbox::sink::smtp
