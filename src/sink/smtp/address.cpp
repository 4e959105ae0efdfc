#include "sink/smtp/address.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/utf8.hpp"
#include "sink/smtp/content.hpp"

namespace outbox::sink::smtp {
namespace {

/// The limits of RFC 5321, 4.5.3.1, where a path with its brackets has 256 characters.
constexpr std::size_t kLongestAddress = 254;
constexpr std::size_t kLongestLocal = 64;
/// The characters of atext in RFC 5322, 3.2.3, and the dot.
constexpr std::string_view kLocalMarks = ".!#$%&'*+-/=?^_`{|}~";
constexpr std::string_view kDomainMarks = ".-_";

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80U; }

bool has_only(std::string_view text, std::string_view marks) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return !is_ascii(c) || is_alnum(c) || marks.find(c) != std::string_view::npos;
  });
}

/// Whether the domain is a host's address instead of its name: [192.0.2.1], [IPv6:2001:db8::1].
bool is_literal(std::string_view domain) {
  return domain.size() > 2 && domain.front() == '[' && domain.back() == ']' &&
         std::all_of(domain.begin() + 1, domain.end() - 1,
                     [](char c) { return is_alnum(c) || c == '.' || c == ':'; });
}

std::string in_quotation_marks(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out += '"';
}

/// The mailbox's text for a line that has `used` bytes.
std::string to_text(const Mailbox& mailbox, std::size_t used) {
  if (mailbox.name.empty()) return mailbox.address;
  const std::string& name = mailbox.name;
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; }) &&
      name.find("=?") == std::string::npos && used + name.size() <= kLineBytes;
  return (plain ? in_quotation_marks(name) : encoded_words(name, used)) + "\r\n <" +
         mailbox.address + ">";
}

/// The parts of "NAME <ADDRESS>"; without brackets there is no name.
std::pair<std::string_view, std::string_view> split_parts(std::string_view text) {
  text = trimmed(text);
  const std::size_t open = text.rfind('<');
  if (!text.ends_with('>') || open == std::string_view::npos) return {{}, text};
  std::string_view name = trimmed(text.substr(0, open));
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"')
    name = name.substr(1, name.size() - 2);
  return {name, trimmed(text.substr(open + 1, text.size() - open - 2))};
}

constexpr const char* kShape =
    "such as \"orders@example.com\", \"{json:customer.email}\" or \"{json:customer.name} <{json:customer.email}>\"";
}  // namespace

std::string_view find_domain(std::string_view address) {
  return address.substr(std::min(address.rfind('@'), address.size() - 1) + 1);
}

bool needs_utf8(std::string_view address) {
  return !std::all_of(address.begin(), address.end(), is_ascii);
}

std::string_view wrong_domain(std::string_view domain) {
  if (domain.empty()) return "has nothing behind the @";
  if (is_literal(domain)) return {};
  if (!has_only(domain, kDomainMarks)) return "has a character in its domain that cannot be there";
  if (domain.front() == '.' || domain.front() == '-' || domain.back() == '.' ||
      domain.find("..") != std::string_view::npos)
    return "has a misplaced dot or hyphen in its domain";
  return {};
}

std::string_view wrong_address(std::string_view address) {
  if (find_fault(address).has_value())
    return "has a line break, another control character, or bytes that are not UTF-8";
  const std::size_t at = address.find('@');
  if (at == std::string_view::npos) return "has no @";
  const std::string_view local = address.substr(0, at);
  if (local.empty()) return "has nothing before the @";
  if (address.find_first_of(" \t") != std::string_view::npos) return "has a blank";
  if (address.find('@', at + 1) != std::string_view::npos) return "has several @";
  if (!has_only(local, kLocalMarks))
    return "has a character before the @ that cannot be there, or is more than one address";
  if (address.size() > kLongestAddress || local.size() > kLongestLocal) return "is too long";
  return wrong_domain(address.substr(at + 1));
}

std::string mailbox_field(std::string_view name, const std::vector<Mailbox>& mailboxes) {
  if (mailboxes.empty()) return {};
  std::string out = std::string(name) + ": ";
  std::size_t used = out.size();
  for (std::size_t i = 0; i < mailboxes.size(); ++i) {
    if (i > 0) {
      out += ",\r\n ";
      used = 1;
    }
    out += to_text(mailboxes[i], used);
  }
  return out += "\r\n";
}

MailboxTemplate::MailboxTemplate(std::string field, std::optional<format::Template> name,
                                 format::Template address)
    : field_(std::move(field)), name_(std::move(name)), address_(std::move(address)) {}

std::optional<MailboxTemplate> MailboxTemplate::parse(const std::string& field,
                                                      std::string_view text, FieldErrors& errors) {
  const auto [name_text, address_text] = split_parts(text);
  auto name = format::Template::compile(field, name_text);
  auto address = format::Template::compile(field, address_text);
  if (!name || !address) {
    errors.add((name ? address : name).error());
    return std::nullopt;
  }
  MailboxTemplate made(field, name_text.empty() ? std::nullopt : std::optional(std::move(*name)),
                       std::move(*address));
  if (const auto fixed = made.address_.fixed()) {
    if (const std::string_view wrong = wrong_address(*fixed); !wrong.empty()) {
      errors.add({field, in_quotes(*fixed) + " " + std::string(wrong), kShape});
      return std::nullopt;
    }
  }
  if (const auto fixed = name_text.empty() ? std::nullopt : made.name_->fixed()) {
    if (const auto fault = find_fault(*fixed)) {
      errors.add({field, "the name " + *fault, kShape});
      return std::nullopt;
    }
  }
  return made;
}

Result<Mailbox> MailboxTemplate::render(const EventView& event, event::Arena& arena) const {
  Mailbox mailbox{.name = {}, .address = std::string(trimmed(address_.render(event, arena)))};
  if (mailbox.address.empty()) return mailbox;
  if (const std::string_view wrong = wrong_address(mailbox.address); !wrong.empty()) {
    return fail(Errc::invalid_argument,
                "smtp: the event's value for " + field_ + " is not a mail address: it " +
                    std::string(wrong),
                kMendEvent);
  }
  if (name_) mailbox.name = trimmed(name_->render(event, arena));
  if (const auto fault = find_fault(mailbox.name)) {
    return fail(Errc::invalid_argument,
                "smtp: the name in the event's value for " + field_ + " " + *fault, kMendEvent);
  }
  return mailbox;
}

std::optional<Mailbox> MailboxTemplate::fixed() const {
  const auto address = address_.fixed();
  const auto name = name_ ? name_->fixed() : std::optional<std::string>("");
  if (!address || !name) return std::nullopt;
  return Mailbox{.name = *name, .address = *address};
}

}  // namespace outbox::sink::smtp
