#include "sink/smtp/mail.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/headers.hpp"
#include "event/text_rules.hpp"
#include "event/time_text.hpp"
#include "sink/smtp/address.hpp"
#include "sink/smtp/content.hpp"
#include "subscription/filter.hpp"

namespace outbox::sink::smtp {
namespace {

/// The header with the message's key, for x_headers.
constexpr std::string_view kKeyHeader = "outbox-key";
/// The prefix of CloudEvents attributes, as in HTTP.
constexpr std::string_view kAttributePrefix = SinkTraits().attribute_prefix;
/// A line must not exceed 998 bytes (RFC 5322, 2.1.1), and a name cannot be folded.
constexpr std::size_t kLongestName = 200;
constexpr std::int64_t kMicros = 1'000'000;
constexpr std::int64_t kYear1900 = -2'208'988'800;
constexpr std::int64_t kYear9999End = 253'402'300'799;

tl::unexpected<Error> refused(const std::string& why, const char* hint = kMendEvent) {
  return fail(Errc::invalid_argument, "smtp: the event cannot be sent: " + why, hint);
}

constexpr std::string_view kPrefix = "X-";

/// The name of a header as in a mail, without the X- that some have.
std::string_view name_after_x(std::string_view name) {
  const bool has_x =
      name.size() > kPrefix.size() && equal_ignoring_case(name.substr(0, kPrefix.size()), kPrefix);
  return has_x ? name.substr(kPrefix.size()) : name;
}

/// Whether formats write a header of this name.
bool is_of_format(std::string_view name) {
  return event::is_reserved_header(name) || event::has_header_prefix(name, kAttributePrefix) ||
         event::same_header(name, event::kContentTypeHeader);
}

/// Whether the header would have a format's name in the mail, as x-outbox-id has that of outbox-id.
bool imitates_format(std::string_view name) {
  const std::string_view rest = name_after_x(name);
  return rest.size() != name.size() && is_of_format(rest);
}

/// Whether a header is left out because another one has its name in the mail. Of several that do
/// not imitate the format, the last one is sent, because those of the subscription are last.
bool is_hidden(std::span<const HeaderView> headers, const HeaderView& header) {
  if (imitates_format(header.name)) return true;
  return std::any_of(&header + 1, headers.data() + headers.size(), [&](const HeaderView& later) {
    return !imitates_format(later.name) &&
           event::same_header(name_after_x(later.name), name_after_x(header.name));
  });
}

bool is_wanted(const std::vector<std::string>& globs, std::string_view name) {
  const std::string lower = to_lower(name);
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return subscription::glob_match(to_lower(trimmed(glob)), lower);
  });
}

Result<std::string> x_field(const HeaderView& header) {
  if (!event::is_token(header.name) || header.name.size() > kLongestName)
    return refused(in_quotes(header.name) + " is not a name of a header field");
  if (const auto fault = find_fault(header.value))
    return refused("the value of the header " + in_quotes(header.name) + " " + *fault);
  const bool has_x = name_after_x(header.name).size() != header.name.size();
  return field(std::string(has_x ? "" : kPrefix).append(header.name), header.value);
}

}  // namespace

std::string date_text(std::int64_t us_since_1970) {
  const std::int64_t seconds = us_since_1970 / kMicros - (us_since_1970 % kMicros < 0 ? 1 : 0);
  const std::tm time =
      fmt::gmtime(static_cast<std::time_t>(std::clamp(seconds, kYear1900, kYear9999End)));
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} +0000", time);
}

Result<std::vector<Mailbox>> Composer::recipients(const std::vector<MailboxTemplate>& all,
                                                  const EventView& event, bool required) {
  std::vector<Mailbox> found;
  for (const MailboxTemplate& one : all) {
    OUTBOX_TRY(Mailbox mailbox, one.render(event, arena_));
    if (!mailbox.address.empty()) {
      found.push_back(std::move(mailbox));
    } else if (required) {
      return refused("it has no value for an address of smtp.to");
    }
  }
  return found;
}

Result<std::string> Composer::subject(const EventView& event) {
  const std::string_view text = options_.subject.render(event, arena_);
  if (const auto fault = find_fault(text)) return refused("its subject " + *fault);
  return field("Subject", text);
}

Result<std::string> Composer::reply_to(const EventView& event) {
  if (!options_.reply_to) return std::string();
  OUTBOX_TRY(const Mailbox mailbox, options_.reply_to->render(event, arena_));
  if (mailbox.address.empty()) return std::string();
  // The address is not in the envelope, so libcurl would not tell the server about it.
  if (needs_utf8(mailbox.address)) return refused("the address of smtp.reply_to is not ASCII");
  return mailbox_field("Reply-To", {mailbox});
}

Result<std::string> Composer::x_fields(const Message& message) const {
  const std::vector<std::string>& wanted = options_.plain.x_headers;
  std::string out;
  for (const HeaderView& header : message.headers) {
    if (!is_wanted(wanted, header.name) || is_hidden(message.headers, header)) continue;
    OUTBOX_TRY(const std::string line, x_field(header));
    out += line;
  }
  if (!message.key || !is_wanted(wanted, kKeyHeader)) return out;
  OUTBOX_TRY(const std::string line, x_field({.name = kKeyHeader, .value = *message.key}));
  return out += line;
}

Result<std::string> Composer::body(const Message& message) {
  if (!options_.body) return content(message.content_type, message.body);
  const bool html = options_.plain.body_type == "text/html";
  std::string text;
  for (const format::TemplatePiece& piece : *options_.body) {
    if (!piece.field) {
      text += piece.text;
      continue;
    }
    const std::string_view value = piece.field->render(*message.event, arena_);
    text += html ? html_escaped(value) : std::string(value);
  }
  return content(options_.plain.body_type, text);
}

Result<Mail> Composer::compose(const Message& message) {
  arena_.clear();
  const EventView& event = *message.event;
  OUTBOX_TRY(const auto to, recipients(options_.to, event, true));
  OUTBOX_TRY(const auto cc, recipients(options_.cc, event, false));
  OUTBOX_TRY(const std::string answers, reply_to(event));
  OUTBOX_TRY(const std::string subject_line, subject(event));
  OUTBOX_TRY(const std::string more, x_fields(message));
  OUTBOX_TRY(const std::string rest, body(message));
  Mail mail{.token = message.token,
            .recipients = {},
            .needs_utf8 = needs_utf8(options_.from.address),
            .message_id = fmt::format("<{}@{}>", event.id.str(), options_.id_domain),
            .text = {}};
  for (const auto* group : {&to, &cc}) {
    for (const Mailbox& one : *group) {
      mail.recipients.push_back(one.address);
      mail.needs_utf8 = mail.needs_utf8 || needs_utf8(one.address);
    }
  }
  mail.text = "Date: " + date_text(event::happened_us(event)) + "\r\n" +
              mailbox_field("From", {options_.from}) + mailbox_field("To", to) +
              mailbox_field("Cc", cc) + answers + subject_line + "Message-ID: " + mail.message_id +
              "\r\n" +
              // This header stops automatic replies (RFC 3834, 5).
              "Auto-Submitted: auto-generated\r\n" + more + "MIME-Version: 1.0\r\n" + rest;
  return mail;
}

}  // namespace outbox::sink::smtp
