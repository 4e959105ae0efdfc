#include "sink/http/headers.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "event/headers.hpp"
#include "event/text_rules.hpp"

namespace outbox::sink::http {
namespace {

/// They say how the message is framed, to whom it goes, or concern one connection only (RFC 9110, 7.6.1); and what is signed.
constexpr std::array<std::string_view, 16> kOurs{"connection",
                                                 "content-length",
                                                 "expect",
                                                 "host",
                                                 "http2-settings",
                                                 "keep-alive",
                                                 "proxy-authenticate",
                                                 "proxy-authorization",
                                                 "proxy-connection",
                                                 "te",
                                                 "trailer",
                                                 "transfer-encoding",
                                                 "upgrade",
                                                 "webhook-id",
                                                 "webhook-timestamp",
                                                 "webhook-signature"};

bool is_ours(std::string_view name, const OwnHeaders& own) {
  const auto same = [&](std::string_view other) { return event::same_header(name, other); };
  return std::any_of(kOurs.begin(), kOurs.end(), same) ||
         (own.authorization && same("authorization")) ||
         (own.idempotency_key && same("idempotency-key"));
}

bool has_control_character(std::string_view value) {
  return std::any_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20U && c != '\t') || byte == 0x7fU;
  });
}

}  // namespace

std::optional<std::string> fault_of(const HeaderView& header, const OwnHeaders& own) {
  if (!event::is_token(header.name)) return in_quotes(header.name) + " is not a name of a header";
  if (is_ours(header.name, own))
    return "the header " + in_quotes(header.name) + " is set by the sink itself";
  if (has_control_character(header.value))
    return "the value of the header " + in_quotes(header.name) +
           " has a line break or another control character";
  return std::nullopt;
}

std::string header_line(std::string_view name, std::string_view value) {
  std::string line(name);
  value = trimmed(value);
  return value.empty() ? line + ";" : line.append(": ").append(value);
}

}  // namespace outbox::sink::http
