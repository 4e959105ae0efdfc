// Where requests go: the setting `url`, with fields of the event in its path and query
// ("https://hooks.example.com/{aggregate_type|kebab}").
//
// The URL is a template of its own, and not a base to which the subscription's topic is appended:
// most receivers have one fixed address that must be usable as it is, and the topic's default
// ("order.events") would change it. Scheme, host and port have no fields: an event must not decide
// to whom events go. Pure.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"
#include "event/arena.hpp"
#include "format/template.hpp"

namespace outbox::sink::http {

class Target {
 public:
  /// Adds an error under the field http.url, and returns nullopt, if the URL is wrong. The error
  /// never quotes the text, because a path may be a secret.
  [[nodiscard]] static std::optional<Target> parse(std::string_view url, bool allow_http,
                                                   FieldErrors& errors);

  /// The whole URL for this event, with percent-encoded values. An error is the event's fault: a
  /// value of the path is missing or would make it another path.
  [[nodiscard]] Result<std::string> url_for(const EventView& event, event::Arena& arena) const;

  /// "https://hooks.example.com:443", to connect to and to show in logs and errors.
  [[nodiscard]] const std::string& origin() const { return origin_; }
  /// Whether the URL depends on the event.
  [[nodiscard]] bool varies() const { return varies_; }
  [[nodiscard]] bool encrypted() const { return encrypted_; }
  /// Whether only this machine can listen in.
  [[nodiscard]] bool is_loopback() const { return is_loopback_; }

 private:
  struct Piece {
    std::string text;  ///< The text as it is in the setting.
    std::optional<format::Template> field{};
    bool in_path{true};  ///< Whether the piece is before the question mark.
  };

  [[nodiscard]] std::string example() const;
  [[nodiscard]] std::optional<FieldError> read(bool allow_http);

  std::vector<Piece> pieces_;
  std::string origin_;
  bool varies_{false};
  bool encrypted_{true};
  bool is_loopback_{false};
};

}  // namespace outbox::sink::http
