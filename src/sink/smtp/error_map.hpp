// What the end of a transfer means for its mail. Pure.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/smtp/dialogue.hpp"

namespace outbox::sink::smtp {

/// How a transfer ended.
struct Ending {
  CURLcode code{CURLE_OK};
  Stage stage{Stage::connect};
  int reply{0};  ///< The answer at this stage; 0: there was none.
  std::string reply_text{};
  std::size_t recipient{0};  ///< The number of the one who was named last, from 1.
  bool whole{
      false};  ///< The last byte of the mail was sent, and so perhaps what says that it is the last one.
  bool reused{false};       ///< On a connection that a mail before it left.
  std::string curl_text{};  ///< What libcurl says of the failure.
};

/// What it is about.
struct MailContext {
  std::string_view server;  ///< "smtp://mail.example.com:587"
  std::string_view message_id{};
  std::chrono::milliseconds deadline{0};
  bool park_unknown{false};
  std::vector<std::string>
      unquoted{};  ///< What must not be in an error when the server repeats it.
};

/// The outcome, without a token.
[[nodiscard]] Outcome judge(const Ending& ending, const MailContext& context);

/// Why nothing can be delivered: the connection could not be made, or the server does not want us.
[[nodiscard]] Error unreachable(const Ending& ending, const MailContext& context);

/// Whether the connection was closed by the server while it was idle, so that nothing happened and another one may work.
[[nodiscard]] bool was_stale(const Ending& ending);

}  // namespace outbox::sink::smtp
