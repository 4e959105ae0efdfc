// Mail addresses, and templates such as "{json:customer.name} <{json:customer.email}>". Pure.
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

/// A sender or recipient. Both parts are texts that a header field can have.
struct Mailbox {
  std::string name;  ///< Empty if there is none.
  std::string address;
};

/// What is wrong with an address; empty if it is valid. It must be one address, local@domain,
/// without quotes and comments, so that nothing in it can be read as another recipient, a header
/// field or a command. Other characters than ASCII are allowed (RFC 6531).
[[nodiscard]] std::string_view wrong_address(std::string_view address);
/// What is wrong with the part behind the @; empty if it is valid.
[[nodiscard]] std::string_view wrong_domain(std::string_view domain);
[[nodiscard]] std::string_view find_domain(std::string_view address);
/// Whether the address needs a server that knows SMTPUTF8.
[[nodiscard]] bool needs_utf8(std::string_view address);

/// The field "To: Name <address>," CR LF " other" CR LF; empty without mailboxes.
[[nodiscard]] std::string mailbox_field(std::string_view name,
                                        const std::vector<Mailbox>& mailboxes);

/// One mailbox. Name and address are separate templates, so that no value can make two addresses.
class MailboxTemplate {
 public:
  /// Adds an error under the field's name, and returns nullopt, if the text is wrong.
  [[nodiscard]] static std::optional<MailboxTemplate> parse(const std::string& field,
                                                            std::string_view text,
                                                            FieldErrors& errors);

  /// The address is empty if the event has none. An error is the event's fault.
  [[nodiscard]] Result<Mailbox> render(const EventView& event, event::Arena& arena) const;
  /// The mailbox if it is the same for all events.
  [[nodiscard]] std::optional<Mailbox> fixed() const;

 private:
  MailboxTemplate(std::string field, std::optional<format::Template> name,
                  format::Template address);

  std::string field_;
  std::optional<format::Template> name_;
  format::Template address_;
};

}  // namespace outbox::sink::smtp
