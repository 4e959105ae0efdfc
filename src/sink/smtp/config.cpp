#include "sink/smtp/config.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/text_file.hpp"
#include "event/base64.hpp"
#include "sink/login_settings.hpp"
#include "sink/smtp/smtp_sink.hpp"

namespace outbox::sink::smtp {
namespace {

using namespace std::chrono_literals;

/// RFC 8314, 7.3: the ports for submitting mails, not port 25 between servers.
constexpr std::array<Scheme, 2> kSchemes{{{"smtp", 587}, {"smtps", 465}}};
constexpr std::size_t kMostBodyBytes = std::size_t{1} << 20U;
constexpr const char* kBodyFile = "smtp.body_file";

SettingRows<SmtpSettings> rows() {
  using S = SmtpSettings;
  return joined<S>({
      {{"url", &S::url, Traits{.required = true, .secret = true},
        "The mail server: smtp://host:port (587; encrypted with STARTTLS) or smtps://host:port (465; from the first byte)."}},
      login_rows<S>(),
      {{"tls", &S::encryption, Traits{.choices = {"required", "off"}},
        "required: nothing is sent without encryption. off: for a server on this machine; for any other one insecure_tls must be set, too."},
       {"hello", &S::hello,
        "The name that this machine gives to the server (EHLO). Default: its host name."}},
      tls_rows<S>(),
      {{"from", &S::from, Traits{.required = true},
        "Who the mails are from: orders@example.com, or Shop <orders@example.com>."},
       {"to", &S::to, Traits{.required = true},
        "Who they are to; each one may have fields of the event: {json:customer.email}, or {json:customer.name} <{json:customer.email}>."},
       {"cc", &S::cc,
        "Who gets a copy, in the same way. Those that are empty for an event are left out."},
       {"reply_to", &S::reply_to, "Where answers go, in the same way."},
       {"subject", &S::subject, "The subject; may have fields of the event."},
       {"body", &S::body,
        "The body; may have fields of the event. Default: the message's own body, which is the payload with format raw."},
       {"body_file", &S::body_file, Traits{.type = SettingType::path},
        "The same, as a file. Each relay reads its own when it opens the sink."},
       {"body_type", &S::body_type, Traits{.choices = {"text/plain", "text/html"}},
        "What body and body_file are. In text/html the values of fields are escaped."},
       {"x_headers", &S::x_headers,
        "Which headers of the message are in the mail: names, or globs such as *. Each gets an X- before its name if it has none."},
       {"message_id_domain", &S::message_id_domain,
        "What follows the event's id in Message-ID. Default: the domain of from. Two subscriptions that mail the same events to the same people need different ones."}},
      {{"on_unknown", &S::on_unknown, Traits{.choices = {"retry", "park"}},
        "What happens to a mail that the server may have sent, when its answer was lost. retry: it is sent again, perhaps twice. "
        "park: a person decides; needs max_attempts = 1 or on_reject = \"stop\"."},
       {"max_in_flight", &S::max_in_flight, Traits{.range = {1, 64}},
        "Mails at a time, each over a connection and with a thread of its own."},
       {"connect_timeout", &S::connect_timeout, Traits{.range = {100ms, 10min}},
        "For resolving the name, connecting, TLS and the login."},
       {"deadline", &S::deadline, Traits{.range = {1s, 1h}},
        "For a whole mail. A server that checks mails before it answers may take 10 minutes."}},
  });
}

// ---- the server

void check_login(const SmtpSettings& settings, const Endpoint& server, FieldErrors& errors) {
  if (!settings.username.empty() && !server.username.empty())
    errors.add({"smtp.username", "is set, and smtp.url has a user", "remove one of them"});
  const bool user = !settings.username.empty() || !server.username.empty();
  const bool password = !settings.password.empty() || !server.password.empty();
  if (user != password) {
    errors.add({user ? "smtp.password" : "smtp.username", "is missing",
                user ? "there is a user" : "there is a password"});
  }
}

void check_encryption(const SmtpSettings& settings, const Endpoint& server, FieldErrors& errors) {
  check_tls("smtp", settings.tls, errors);
  if (settings.encrypted()) return;
  if (server.scheme == "smtps") {
    errors.add(
        {"smtp.tls", "is off, and smtp.url is smtps://", "write smtp:// for a server without TLS"});
  } else if (!server.is_loopback() && !settings.tls.insecure) {
    errors.add(
        {"smtp.tls", "is off: others could read the mails and the password in transit",
         "leave it at required; inside a network that you trust set smtp.insecure_tls = true, too"});
  }
}

std::optional<Endpoint> parse_server(const SmtpSettings& settings, FieldErrors& errors) {
  auto servers = parse_endpoints("smtp.url", settings.url, kSchemes, errors);
  if (errors.of("smtp.url")) return std::nullopt;
  if (servers.size() != 1) {
    errors.add({"smtp.url", servers.empty() ? "is empty" : "names several servers",
                "name one, such as smtp://mail.example.com:587"});
    return std::nullopt;
  }
  Endpoint server = std::move(servers.front());
  if (!server.path.empty())
    errors.add({"smtp.url", "has a path", "the name for EHLO is the setting smtp.hello"});
  check_login(settings, server, errors);
  check_encryption(settings, server, errors);
  if (!settings.username.empty()) server.username = settings.username;
  if (!settings.password.empty()) server.password = settings.password;
  return server;
}

std::vector<std::string> list_secrets(const Endpoint& server) {
  if (server.username.empty()) return {};
  return {event::base64_text(std::string(1, '\0') + server.username + '\0' + server.password),
          event::base64_text(server.password), server.password};
}

// ---- the mail

std::vector<MailboxTemplate> mailboxes(const std::string& field,
                                       const std::vector<std::string>& texts, FieldErrors& errors) {
  std::vector<MailboxTemplate> all;
  for (const std::string& text : texts) {
    if (auto one = MailboxTemplate::parse(field, text, errors)) all.push_back(std::move(*one));
  }
  return all;
}

Mailbox sender(const SmtpSettings& settings, FieldErrors& errors) {
  const auto parsed = MailboxTemplate::parse("smtp.from", settings.from, errors);
  if (!parsed) return {};
  auto fixed = parsed->fixed();
  if (fixed) return std::move(*fixed);
  errors.add(
      {"smtp.from", "has a field",
       "events must not decide in whose name mails are sent: make a subscription for each sender, and use "
       "smtp.reply_to"});
  return {};
}

std::string id_domain(const SmtpSettings& settings, const Mailbox& from, FieldErrors& errors) {
  const bool own = settings.message_id_domain.empty();
  std::string domain(own ? find_domain(from.address)
                         : std::string_view(settings.message_id_domain));
  if (own && from.address.empty()) return domain;  // The missing address has its own error.
  const std::string_view wrong = wrong_domain(domain);
  // Even a server that knows SMTPUTF8 gets an ASCII domain, so that an id is the same everywhere.
  if (wrong.empty() && !needs_utf8(domain)) return domain;
  errors.add({"smtp.message_id_domain",
              own ? "is missing, and the domain of smtp.from is not ASCII" : "is not a domain",
              "a domain in ASCII that is yours, such as example.com"});
  return domain;
}

void check_names(const SmtpSettings& settings, FieldErrors& errors) {
  const std::string_view hello = settings.hello;
  const bool fit = std::all_of(hello.begin(), hello.end(),
                               [](char c) { return is_alnum(c) || c == '.' || c == '-'; });
  if (!fit)
    errors.add({"smtp.hello", "is not the name of a machine", "such as relay1.example.com"});
  if (!settings.body.empty() && !settings.body_file.empty())
    errors.add({kBodyFile, "is set beside smtp.body", "set one of them"});
  if (settings.connect_timeout > settings.deadline)
    errors.add({"smtp.connect_timeout", "is longer than smtp.deadline"});
  if (settings.to.empty()) errors.add({"smtp.to", "is empty", "such as \"{json:customer.email}\""});
}

// ---- the kind

void check(const SmtpSettings& settings, FieldErrors& errors) {
  (void)read_options(settings, errors);
}

/// Refuses to park what is unknown if parked events are sent again by themselves.
void check_use(const SmtpSettings& settings, const SubscriptionSpec& spec, FieldErrors& errors) {
  const bool once =
      spec.on_reject == OnReject::stop || (spec.max_attempts == 1 && spec.delays.empty());
  if (!settings.park_unknown() || once) return;
  errors.add({"smtp.on_unknown",
              "is park, but this subscription sends parked events again by itself",
              "set max_attempts = 1 without delays, or on_reject = \"stop\""});
}

/// Reads the body's file into `settings`.
Status read_body(SmtpSettings& settings) {
  if (settings.body_file.empty()) return {};
  auto file = read_text_file(settings.body_file, kMostBodyBytes);
  if (!file) {
    return bad_field(kBodyFile, settings.body_file + ": " + file.error().message,
                     "name a file of at most 1 MiB that the relay's user can read");
  }
  OUTBOX_TRY(format::template_pieces(kBodyFile, file->text));
  settings.body = std::move(file->text);
  settings.body_file.clear();
  return {};
}

void check_here(const SmtpSettings& settings, FieldErrors& errors) {
  SmtpSettings copy = settings;
  if (const Status read = read_body(copy); !read) errors.add(read.error());
}

Result<std::unique_ptr<NetworkSink>> make(SmtpSettings settings, const SubscriptionSpec& /*spec*/) {
  OUTBOX_TRY(read_body(settings));
  OUTBOX_TRY(auto options, read_valid(read_options, std::move(settings)));
  return std::make_unique<SmtpSink>(std::move(*options));
}

}  // namespace

std::optional<SmtpOptions> read_options(SmtpSettings settings, FieldErrors& errors) {
  auto server = parse_server(settings, errors);
  check_names(settings, errors);
  Mailbox from = sender(settings, errors);
  auto to = mailboxes("smtp.to", settings.to, errors);
  auto cc = mailboxes("smtp.cc", settings.cc, errors);
  std::optional<MailboxTemplate> reply_to;
  if (!settings.reply_to.empty())
    reply_to = MailboxTemplate::parse("smtp.reply_to", settings.reply_to, errors);
  auto subject = format::Template::compile("smtp.subject", settings.subject);
  if (!subject) errors.add(subject.error());
  auto body = format::template_pieces("smtp.body", settings.body);
  if (!body) errors.add(body.error());
  std::string domain = id_domain(settings, from, errors);
  if (!server || !errors.empty()) return std::nullopt;
  auto secrets = list_secrets(*server);
  const bool own_body = settings.body.empty();
  std::string server_name = server->shown();
  return SmtpOptions{.plain = std::move(settings),
                     .server = std::move(*server),
                     .server_name = std::move(server_name),
                     .from = std::move(from),
                     .to = std::move(to),
                     .cc = std::move(cc),
                     .reply_to = std::move(reply_to),
                     .subject = std::move(*subject),
                     .body = own_body ? std::nullopt : std::optional(std::move(*body)),
                     .id_domain = std::move(domain),
                     .secrets = std::move(secrets)};
}

SinkKind kind() {
  return make_kind<SmtpSettings>({.name = "smtp",
                                  .help = "sends a mail for each event",
                                  .rows = rows(),
                                  .check = check,
                                  .check_use = check_use,
                                  .check_here = check_here,
                                  .make_network = make});
}

}  // namespace outbox::sink::smtp
