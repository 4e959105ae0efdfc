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
  int reply{0};  ///< The answer at this stage; 0 if there was none.
  std::string reply_text{};
  std::size_t recipient{0};  ///< The number of the last recipient that was named, from 1.
  /// Whether the last byte of the mail was sent, and so perhaps the mark that ends it.
  bool whole{false};
  bool reused{false};       ///< Whether an earlier mail used the same connection.
  std::string curl_text{};  ///< libcurl's description of the failure.
};

/// What an ending is judged with.
struct MailContext {
  std::string_view server;  ///< "smtp://mail.example.com:587"
  std::string_view message_id{};
  std::chrono::milliseconds deadline{0};
  bool park_unknown{false};
  /// Texts that must not be in an error when the server repeats them.
  std::vector<std::string> unquoted{};
};

/// The outcome, without a token.
[[nodiscard]] Outcome judge(const Ending& ending, const MailContext& context);

/// Why nothing can be delivered: the connection could not be made, or the server refuses us.
[[nodiscard]] Error unreachable(const Ending& ending, const MailContext& context);

/// Whether the server had closed the idle connection: nothing happened, and a new one may work.
[[nodiscard]] bool was_stale(const Ending& ending);

}  // namespace outbox::sink::smtp
