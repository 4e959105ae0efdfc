// Mail addresses, and templates of them: "{json:customer.email}", "{json:customer.name} <{json:customer.email}>". Pure.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"
#include "event/arena.hpp"
#include "format/template.hpp"

namespace outbox::sink::smtp {

inline constexpr const char* kMendEvent =
    "the event is at fault: send it corrected (outbox parked edit), or discard it (outbox parked discard)";

/// Who a mail is from or to. Both parts are text that can be in a header field.
struct Mailbox {
  std::string name;  ///< Empty: none.
  std::string address;
};

/// What is wrong with an address; empty: nothing. It must be one address, local@domain, without quotes and comments: so that nothing in it can
/// be read as another recipient, a header field or a command. Other characters than ASCII are allowed (RFC 6531).
[[nodiscard]] std::string_view wrong_address(std::string_view address);
/// What is wrong with the part behind the @.
[[nodiscard]] std::string_view wrong_domain(std::string_view domain);
[[nodiscard]] std::string_view domain_of(std::string_view address);
/// Whether a server must know SMTPUTF8 to take it.
[[nodiscard]] bool needs_utf8(std::string_view address);

/// "To: Name <address>,\r\n other\r\n"; empty without mailboxes.
[[nodiscard]] std::string mailbox_field(std::string_view name,
                                        const std::vector<Mailbox>& mailboxes);

/// One mailbox. Name and address are templates of their own, so that no value of an event can make one address of two.
class MailboxTemplate {
 public:
  /// None after a complaint under the field's name.
  [[nodiscard]] static std::optional<MailboxTemplate> parse(const std::string& field,
                                                            std::string_view text,
                                                            FieldErrors& errors);

  /// An empty address: the event has none. An error is the event's fault.
  [[nodiscard]] Result<Mailbox> render(const EventView& event, event::Arena& arena) const;
  /// The mailbox, if it is the same for all events.
  [[nodiscard]] std::optional<Mailbox> fixed() const;

 private:
  MailboxTemplate(std::string field, std::optional<format::Template> name,
                  format::Template address);

  std::string field_;
  std::optional<format::Template> name_;
  format::Template address_;
};

}  // namespace outbox::sink::smtp
