// The parts of the SMTP sink that need no server: settings, addresses, header fields, bodies,
// mails, and what answers mean.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "event/time_text.hpp"
#include "sink/smtp/address.hpp"
#include "sink/smtp/content.hpp"
#include "sink/smtp/dialogue.hpp"
#include "sink/smtp/error_map.hpp"
#include "sink/smtp/mail.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using namespace sink::smtp;  // NOLINT(google-build-using-namespace)
using Given = std::map<std::string, std::string>;
using Kind = Outcome::Kind;

// ---- settings

SubscriptionSpec spec(Given settings) { return make_spec("smtp", std::move(settings), "mails"); }

/// Adds the settings that are required.
Given complete(Given settings) {
  settings.emplace("url", "smtp://mail.example.com");
  settings.emplace("from", "shop@example.com");
  settings.emplace("to", "{json:email}");
  return settings;
}
std::string complaint(Given settings) {
  return find_complaint(spec(complete(std::move(settings))));
}

TEST(SmtpSettings, a_server_a_sender_and_a_recipient_are_all_that_is_needed) {
  EXPECT_EQ(complaint(Given{}), "");
  EXPECT_TRUE(
      contains(find_complaint(spec({{"from", "a@b"}, {"to", "a@b"}})), "smtp.url: is missing"));
  EXPECT_TRUE(contains(find_complaint(spec({{"url", "smtp://h"}, {"to", "a@b"}})),
                       "smtp.from: is missing"));
  EXPECT_TRUE(contains(find_complaint(spec({{"url", "smtp://h"}, {"from", "a@b"}})),
                       "smtp.to: is missing"));
}

TEST(SmtpSettings, every_setting_is_checked) {
  for (const auto& [name, value] : std::multimap<std::string, std::string>{
           {"url", "smtps://mail.example.com:465"},
           {"url", "smtp://me:hush@[2001:db8::1]:2525"},
           {"from", "Shop <shop@example.com>"},
           {"from", "\"The Shop, Inc.\" <shop@example.com>"},
           {"from",
            "B\xc3\xbc"
            "cher <shop@example.com>"},
           {"to", "a@example.com,{json:b.email},{json:name} <{json:email|lower}>"},
           {"cc", "{json:manager.email}"},
           {"reply_to", "{header:answers|default:help@example.com}"},
           {"subject", "Order {aggregate_id}"},
           {"body", "Hello {json:name}"},
           {"body_type", "text/html"},
           {"x_headers", "outbox-*,tenant"},
           {"message_id_domain", "mails.example.com"},
           {"hello", "relay-1.example.com"},
           {"max_in_flight", "64"},
           {"connect_timeout", "500ms"},
           {"deadline", "1h"}})
    EXPECT_EQ(complaint({{name, value}}), "") << name << "=" << value;
  for (const auto& [name, value] :
       std::multimap<std::string, std::string>{{"url", "mail.example.com"},
                                               {"url", "http://hush@h"},
                                               {"url", "smtp://a,smtp://b"},
                                               {"url", "smtp://h/hush"},
                                               {"url", ""},
                                               {"username", "me"},
                                               {"password", "hush"},
                                               {"tls", "off"},
                                               {"tls", "maybe"},
                                               {"tls_key", "/etc/key.pem"},
                                               {"tls_certificate", "/etc/certificate.pem"},
                                               {"from", "shop"},
                                               {"from", "{json:from}"},
                                               {"from", "{json:name} <a@b>"},
                                               {"from", "a@b, c@d"},
                                               {"from",
                                                "shop@b\xc3\xbc"
                                                "cher.example"},
                                               {"to", ""},
                                               {"to", "a@b,"},
                                               {"to", "a b@c"},
                                               {"to", "{json:}"},
                                               {"cc", "{nothing}"},
                                               {"reply_to", "a@b@c"},
                                               {"subject", "{json:x"},
                                               {"body", "{css: no}"},
                                               {"body_type", "text/markdown"},
                                               {"message_id_domain", "a b"},
                                               {"message_id_domain",
                                                "b\xc3\xbc"
                                                "cher.example"},
                                               {"hello", "a b"},
                                               {"hello", "a\r\nb"},
                                               {"max_in_flight", "0"},
                                               {"max_in_flight", "65"},
                                               {"connect_timeout", "10"},
                                               // The deadline is less than the time to connect.
                                               {"deadline", "5s"},
                                               {"on_unknown", "drop"},
                                               {"recipients", "a@b"}}) {
    const std::string text = complaint({{name, value}});
    EXPECT_TRUE(contains(text, "smtp.")) << name << "=" << value << ": " << text;
    EXPECT_FALSE(contains(text, "hush")) << text;
  }
  EXPECT_TRUE(contains(complaint({{"body", "a"}, {"body_file", "/b"}}), "beside smtp.body"));
  EXPECT_TRUE(contains(complaint({{"url", "smtp://me:x@h"}, {"username", "me"}, {"password", "x"}}),
                       "smtp.url has a user"));
}

TEST(SmtpSettings, nothing_goes_unencrypted_by_accident) {
  EXPECT_TRUE(contains(complaint({{"tls", "off"}}), "in transit"));
  EXPECT_EQ(complaint({{"tls", "off"}, {"insecure_tls", "true"}}), "");
  for (const char* url : {"smtp://localhost:25", "smtp://127.0.0.1:25", "smtp://[::1]:25"})
    EXPECT_EQ(complaint({{"tls", "off"}, {"url", url}}), "") << url;
  EXPECT_TRUE(contains(complaint({{"tls", "off"}, {"url", "smtps://localhost"}}), "smtps://"));
}

TEST(SmtpSettings, parking_what_is_in_doubt_needs_a_subscription_that_does_not_send_it_again) {
  SubscriptionSpec parks = spec(complete({{"on_unknown", "park"}}));
  EXPECT_TRUE(contains(find_complaint(parks), "smtp.on_unknown: is park"));
  parks.max_attempts = 1;
  EXPECT_EQ(find_complaint(parks), "");
  parks.delays = {std::chrono::seconds(1)};
  EXPECT_TRUE(contains(find_complaint(parks), "smtp.on_unknown: is park"));
  parks.on_reject = OnReject::stop;
  EXPECT_EQ(find_complaint(parks), "");
}

TEST(SmtpSettings, a_body_in_a_file_is_read_where_the_sink_is_made) {
  const TempDir folder;
  const std::string file = folder.file("body.html");
  const SubscriptionSpec spec_of_file = spec(complete({{"body_file", file}}));
  EXPECT_EQ(find_complaint(spec_of_file), "") << "another machine may have it";
  FieldErrors here;
  sink::find_kind("smtp")->check_here(spec_of_file, here);
  EXPECT_TRUE(here.of("smtp.body_file"));
  EXPECT_FALSE(sink::make_sink(spec_of_file));
  std::ofstream(file) << "Hello {json:name";
  const auto broken = sink::make_sink(spec_of_file);
  ASSERT_FALSE(broken);
  EXPECT_TRUE(contains(broken.error().message, "smtp.body_file: ")) << broken.error().text();
  std::ofstream(file) << "Hello {json:name}";
  EXPECT_TRUE(sink::make_sink(spec_of_file));
}

// ---- addresses

TEST(SmtpAddress, what_is_one_address_is_taken) {
  for (const std::string& address :
       {std::string("a@b"), std::string("first.last+tag@mail.example.com"),
        std::string("o'neill!#$%&*/=?^_`{|}~-@example.com"), std::string("a@[192.0.2.1]"),
        std::string("a@[IPv6:2001:db8::1]"),
        std::string("j\xc3\xbcrgen@b\xc3\xbc"
                    "cher.example"),
        std::string(64, 'x') + "@example.com"})
    EXPECT_EQ(wrong_address(address), "") << address;
}

TEST(SmtpAddress, text_never_becomes_another_recipient_or_a_command) {
  for (const std::string& address : {std::string(""),
                                     std::string("a"),
                                     std::string("@b"),
                                     std::string("a@"),
                                     std::string("a@b@c"),
                                     std::string("a@b,c@d"),
                                     std::string("a@b;c@d"),
                                     std::string("a b@c"),
                                     std::string("a@b c"),
                                     std::string("a@b>\r\nRCPT TO:<c@d"),
                                     std::string("a@b\r\nDATA"),
                                     std::string("a@b\n"),
                                     std::string("a\r@b"),
                                     std::string("a\0@b", 4),
                                     std::string("a@b\0", 4),
                                     std::string("<a@b>"),
                                     std::string("a@b> SIZE=1"),
                                     std::string("\"a b\"@c"),
                                     std::string("a(comment)@b"),
                                     std::string("a\\@b"),
                                     std::string("a:b@c"),
                                     std::string("a@.b"),
                                     std::string("a@b..c"),
                                     std::string("a@-b"),
                                     std::string("a@b."),
                                     std::string("a\xff@b"),
                                     std::string("a@[b"),
                                     std::string("a@[b]\r\n"),
                                     std::string("a\x7f@b"),
                                     std::string(65, 'x') + "@b",
                                     "a@" + std::string(300, 'x')})
    EXPECT_NE(wrong_address(address), "") << address;
}

Result<Mailbox> mailbox(const std::string& text, const EventView& event) {
  FieldErrors errors;
  const auto parsed = MailboxTemplate::parse("smtp.to", text, errors);
  EXPECT_TRUE(parsed.has_value()) << text << ": " << errors.status().error().text();
  event::Arena arena;
  return parsed->render(event, arena);
}

TEST(SmtpAddress, comes_from_the_event) {
  EventView event;
  event.payload =
      R"({"name":"Ada, Countess <of> Lovelace","email":" ada@example.com ","null":null})";
  const auto both = mailbox("{json:name} <{json:email}>", event);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->name, "Ada, Countess <of> Lovelace");
  EXPECT_EQ(both->address, "ada@example.com");
  EXPECT_EQ(mailbox("{json:null}", event)->address, "");
  EXPECT_EQ(mailbox("{json:none|default:x@y}", event)->address, "x@y");
  EXPECT_FALSE(mailbox("{json:name}", event)) << "several addresses, or none";
}

TEST(SmtpAddress, a_value_cannot_make_one_recipient_of_two) {
  for (const char* payload :
       {R"({"name":"x","email":"a@b, c@d"})", R"({"name":"x","email":"a@b\r\nBcc: c@d"})",
        R"({"name":"x\r\nBcc: c@d","email":"a@b"})", R"({"name":"x\u0000","email":"a@b"})",
        R"({"name":"x","email":"a@b> , <c@d"})"}) {
    EventView event;
    event.payload = payload;
    const auto made = mailbox("{json:name} <{json:email}>", event);
    ASSERT_FALSE(made) << payload;
    EXPECT_FALSE(contains(made.error().text(), "a@b"))
        << "an address of a person: " << made.error().text();
    EXPECT_FALSE(made.error().hint.empty());
  }
}

TEST(SmtpAddress, fields_of_several_have_lines) {
  EXPECT_EQ(mailbox_field("To", {{.name = "", .address = "a@b"}}), "To: a@b\r\n");
  EXPECT_EQ(mailbox_field("To", {}), "");
  EXPECT_EQ(mailbox_field("To", {{.name = "A \"B\" \\, C", .address = "a@b"},
                                 {.name = "", .address = "c@d"}}),
            "To: \"A \\\"B\\\" \\\\, C\"\r\n <a@b>,\r\n c@d\r\n");
  EXPECT_EQ(mailbox_field("From", {{.name = "B\xc3\xbc"
                                            "cher",
                                    .address = "a@b"}}),
            "From: =?UTF-8?B?QsO8Y2hlcg==?=\r\n <a@b>\r\n");
}

// ---- header fields

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\r\n"), text.size());
    longest = std::max(longest, end);
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return longest;
}

TEST(SmtpHeaderText, short_ascii_is_written_as_it_is) {
  EXPECT_EQ(field("Subject", "Order 42: ready"), "Subject: Order 42: ready\r\n");
  EXPECT_EQ(field("Subject", ""), "Subject: \r\n");
}

TEST(SmtpHeaderText, everything_else_becomes_encoded_words_that_no_line_cuts) {
  EXPECT_EQ(field("Subject",
                  "Gr\xc3\xbc\xc3\x9f"
                  "e"),
            "Subject: =?UTF-8?B?R3LDvMOfZQ==?=\r\n");
  EXPECT_EQ(field("Subject", " x"), "Subject: =?UTF-8?B?IHg=?=\r\n") << "readers trim";
  EXPECT_TRUE(contains(field("Subject", "=?UTF-8?B?x?="), "PT9VVEYtOD9CP3g/PQ=="))
      << "it only looks like one";
  std::string faces;
  for (int i = 0; i < 100; ++i) faces += "\xf0\x9f\x99\x82";
  for (const std::string& text : {std::string(500, 'x'), faces, std::string("x") + faces})
    for (const std::string& name :
         {std::string("Subject"), std::string("X-") + std::string(60, 'n')})
      EXPECT_LE(longest_line(field(name, text)), 76U) << name;
  EXPECT_FALSE(contains(field("Subject", faces),
                        "?B?"
                        "?="))
      << "a word without a character";
}

TEST(SmtpHeaderText, what_could_be_another_field_is_at_fault) {
  for (const std::string& bad :
       {std::string("a\r\nBcc: b"), std::string("a\nb"), std::string("a\rb"),
        std::string("a\0b", 3), std::string("\x1b[2J"), std::string("a\x7f"), std::string("a\xff")})
    EXPECT_TRUE(find_fault(bad).has_value());
  for (const char* good : {"", "a", "a\tb", "gr\xc3\xbc\xc3\x9f dich"})
    EXPECT_FALSE(find_fault(good).has_value()) << good;
}

// ---- bodies

TEST(SmtpContent, text_stays_readable) {
  EXPECT_EQ(quoted_printable("Hello"), "Hello=\r\n") << "it has no line break at its end";
  EXPECT_EQ(quoted_printable("a\r\nb\r\n"), "a\r\nb\r\n");
  EXPECT_EQ(quoted_printable("1 = 2\tx"), "1 =3D 2\tx=\r\n");
  EXPECT_EQ(quoted_printable("blank \r\ntab\t\r\n "), "blank=20\r\ntab=09\r\n=20=\r\n");
  EXPECT_EQ(quoted_printable("\xc3\xbc"), "=C3=BC=\r\n");
  EXPECT_EQ(quoted_printable("a\rb"), "a=0Db=\r\n");
  EXPECT_EQ(quoted_printable(""), "");
}

TEST(SmtpContent, no_line_is_long_or_begins_with_a_dot) {
  for (const std::string& text :
       {std::string(5000, 'x'), std::string(5000, '.'), std::string(5000, '='),
        std::string(75, 'x') + "." + std::string(75, '.'), std::string("..\r\n.\r\n.x"),
        std::string(900, '\t')}) {
    const std::string encoded = quoted_printable(text);
    EXPECT_LE(longest_line(encoded), 76U);
    EXPECT_FALSE(encoded.starts_with('.'));
    EXPECT_FALSE(contains(encoded, "\n."));
  }
  EXPECT_LE(longest_line(base64_lines(std::string(5000, 'x'))), 76U);
}

TEST(SmtpContent, line_breaks_become_those_of_mails) {
  EXPECT_EQ(with_crlf("a\nb\r\nc\n\nd\re"), "a\r\nb\r\nc\r\n\r\nd\re");
  EXPECT_EQ(with_crlf("\n"), "\r\n");
}

std::string head(const std::string& type, const std::string& body) {
  const auto made = content(type, body);
  if (!made) return "!" + made.error().text();
  return made->substr(0, made->find("\r\n\r\n"));
}

TEST(SmtpContent, the_type_follows_the_event) {
  const std::string readable = "\r\nContent-Transfer-Encoding: quoted-printable";
  const std::string exact = "\r\nContent-Transfer-Encoding: base64";
  EXPECT_EQ(head("", "x"), "Content-Type: text/plain; charset=utf-8" + readable);
  EXPECT_EQ(head("application/json", "{}"), "Content-Type: text/plain; charset=utf-8" + readable);
  EXPECT_EQ(head("text/html", "<p>"), "Content-Type: text/html; charset=utf-8" + readable);
  EXPECT_EQ(head("text/html; charset=UTF-8", "<p>"),
            "Content-Type: text/html; charset=UTF-8" + readable);
  EXPECT_EQ(head("text/plain; charset=iso-8859-1", "gr\xfc\xdf"),
            "Content-Type: text/plain; charset=iso-8859-1" + exact);
  EXPECT_EQ(head("text/plain; charset=utf-16le", std::string("a\0\n\0", 4)),
            "Content-Type: text/plain; charset=utf-16le" + exact);
  EXPECT_EQ(head("text/plain", "\xff\xfe"), "Content-Type: text/plain" + exact);
  EXPECT_EQ(head("", "\xff"), "Content-Type: application/octet-stream" + exact);
  EXPECT_EQ(head("application/pdf", "%PDF"), "Content-Type: application/pdf" + exact);
  EXPECT_EQ(head("text/plain", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"),
            "Content-Type: text/plain; charset=utf-8" + exact);
  for (const char* type : {"multipart/mixed; boundary=x", "message/rfc822",
                           "text/plain\r\nBcc: a@b", "text/pl\xc3\xa4in"})
    EXPECT_TRUE(head(type, "x").starts_with('!')) << type;
}

TEST(SmtpContent, html_keeps_values_as_text) {
  EXPECT_EQ(html_escaped("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

// ---- mails

class SmtpMail : public testing::Test {
 protected:
  SmtpMail() {
    settings_.url = "smtp://mail.example.com";
    settings_.from = "Shop <shop@example.com>";
    settings_.to = {"{json:email}"};
    Load::Item& item = load_.add("42", "Hello", "text/plain");
    item.event.payload = R"({"email":"ada@example.com","name":"<b>Ada</b>"})";
    item.event.created_at = event::timestamp(1'700'000'000'999'999);
  }
  [[nodiscard]] EventView& event() { return load_.item(0).event; }
  [[nodiscard]] Result<Mail> compose() {
    FieldErrors errors;
    options_ = read_options(settings_, errors);
    if (!options_) {
      ADD_FAILURE() << errors.status().error().text();
      return pass_none();
    }
    return Composer(*options_).compose(load_.message(0, 7));
  }
  /// The mail's text, or "!" and the error if the event is at fault.
  [[nodiscard]] std::string text() {
    const auto mail = compose();
    return mail ? mail->text : "!" + mail.error().text();
  }

  SmtpSettings settings_;
  Load load_;

 private:
  static Result<Mail> pass_none() { return tl::unexpected<Error>(Error{}); }
  std::optional<SmtpOptions> options_;
};

TEST_F(SmtpMail, has_everything_that_a_mail_needs) {
  settings_.cc = {"Ops <ops@example.com>", "{json:manager}"};
  settings_.reply_to = "help@example.com";
  const auto mail = compose();
  ASSERT_TRUE(mail) << mail.error().text();
  EXPECT_EQ(mail->token, 7U);
  EXPECT_EQ(mail->recipients, (std::vector<std::string>{"ada@example.com", "ops@example.com"}));
  EXPECT_FALSE(mail->needs_utf8);
  EXPECT_EQ(mail->message_id, "<" + load_.item(0).id_text + "@example.com>");
  EXPECT_EQ(mail->text,
            "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
            "From: \"Shop\"\r\n <shop@example.com>\r\n"
            "To: ada@example.com\r\n"
            "Cc: \"Ops\"\r\n <ops@example.com>\r\n"
            "Reply-To: help@example.com\r\n"
            "Subject: OrderPlaced\r\n"
            "Message-ID: " +
                mail->message_id +
                "\r\n"
                "Auto-Submitted: auto-generated\r\n"
                "MIME-Version: 1.0\r\n"
                "Content-Type: text/plain; charset=utf-8\r\n"
                "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
                "Hello=\r\n");
}

TEST_F(SmtpMail, is_the_same_each_time) {
  load_.item(0).body = "gr\xc3\xbc\xc3\x9f dich\n";
  EXPECT_EQ(text(), text());
}

TEST_F(SmtpMail, has_the_events_time) {
  EXPECT_EQ(date_text(0), "Thu, 01 Jan 1970 00:00:00 +0000");
  EXPECT_EQ(date_text(-1), "Wed, 31 Dec 1969 23:59:59 +0000");
  EXPECT_EQ(date_text(1'709'164'800'000'000), "Thu, 29 Feb 2024 00:00:00 +0000");
  EXPECT_TRUE(contains(date_text(INT64_MIN), "1900"));
  EXPECT_TRUE(contains(date_text(INT64_MAX), "9999"));
  event().occurred_at = event::timestamp(0);
  EXPECT_TRUE(contains(text(), "Date: Thu, 01 Jan 1970"));
}

TEST_F(SmtpMail, needs_an_address_for_each_of_to_but_not_of_cc) {
  settings_.to = {"{json:none}", "ops@example.com"};
  EXPECT_TRUE(contains(text(), "!smtp: the event cannot be sent: it has no value for an address"));
  settings_.to = {"ops@example.com"};
  settings_.cc = {"{json:none}"};
  EXPECT_FALSE(contains(text(), "Cc:"));
}

TEST_F(SmtpMail, knows_what_needs_utf8) {
  event().payload = "{\"email\":\"j\xc3\xbcrgen@example.com\"}";
  const auto mail = compose();
  ASSERT_TRUE(mail);
  EXPECT_TRUE(mail->needs_utf8);
  settings_.to = {"ops@example.com"};
  settings_.reply_to = "{json:email}";
  EXPECT_TRUE(contains(text(), "!")) << "no server is told that a field has it";
}

TEST_F(SmtpMail, headers_that_were_asked_for_have_an_x) {
  load_.item(0).headers.push_back({.name = "tenant", .value = "n\xc3\xb6rd"});
  load_.item(0).headers.push_back({.name = "X-Priority", .value = "1"});
  EXPECT_FALSE(contains(text(), "X-"));
  settings_.x_headers = {"Tenant", "x-*", "outbox-key"};
  const std::string some = text();
  EXPECT_TRUE(contains(some, "\r\nX-tenant: =?UTF-8?B?bsO2cmQ=?=\r\n")) << some;
  EXPECT_TRUE(contains(some, "\r\nX-Priority: 1\r\n"));
  EXPECT_TRUE(contains(some, "\r\nX-outbox-key: 42\r\n"));
  EXPECT_FALSE(contains(some, "X-outbox-seq"));
  settings_.x_headers = {"*"};
  EXPECT_TRUE(contains(text(), "X-outbox-seq: 1\r\n"));
}

TEST_F(SmtpMail, no_text_of_an_event_becomes_another_field) {
  settings_.x_headers = {"*"};
  load_.item(0).headers.push_back({.name = "note", .value = "a\r\nBcc: c@d"});
  EXPECT_TRUE(text().starts_with('!'));
  load_.item(0).headers.back() = {.name = "a: b\r\nBcc", .value = "c@d"};
  EXPECT_TRUE(text().starts_with('!'));
  load_.item(0).headers.pop_back();
  load_.item(0).content_type = "text/plain\r\nBcc: c@d";
  load_.item(0).headers.clear();
  EXPECT_TRUE(text().starts_with('!'));
  load_.item(0).content_type = "";
  settings_.subject = "{json:subject}";
  for (const char* subject :
       {R"({"email":"a@b","subject":"a\r\nBcc: c@d"})", R"({"email":"a@b","subject":"a\u0000"})"}) {
    event().payload = subject;
    EXPECT_TRUE(contains(text(), "!smtp: the event cannot be sent: its subject has a line break"))
        << subject;
  }
}

TEST_F(SmtpMail, the_body_may_be_a_template) {
  settings_.body = "Dear {json:name},\nyour order {aggregate_id} {{is}} ready.\n";
  EXPECT_TRUE(contains(text(), "\r\n\r\nDear <b>Ada</b>,\r\nyour order  {is} ready.\r\n"))
      << text();
  settings_.body_type = "text/html";
  EXPECT_TRUE(contains(text(), "Content-Type: text/html; charset=utf-8"));
  EXPECT_TRUE(contains(text(), "Dear &lt;b&gt;Ada&lt;/b&gt;,")) << text();
}

TEST_F(SmtpMail, the_id_may_have_another_domain) {
  settings_.message_id_domain = "invoices.example.com";
  EXPECT_TRUE(contains(text(), "@invoices.example.com>\r\n"));
}

// ---- the dialogue

Dialogue dialogue(const std::vector<std::string>& lines) {
  Dialogue made;
  for (const std::string& line : lines) {
    if (line.starts_with("> ")) made.sent(line.substr(2) + "\r\n");
    if (line.starts_with("< ")) made.received(line.substr(2) + "\r\n");
  }
  return made;
}

TEST(SmtpDialogue, knows_what_is_said_behind_a_keyword) {
  const auto size = [](const std::vector<std::string>& lines) {
    return std::string(dialogue(lines).parameters("SIZE"));
  };
  EXPECT_EQ(size({"> EHLO me", "< 250-mail.test", "< 250 size 10240000"}), "10240000");
  EXPECT_EQ(size({"> EHLO me", "< 250-mail.test", "< 250 SIZE"}), "");
  EXPECT_EQ(size({"> EHLO me", "< 250 mail.test"}), "");
  EXPECT_EQ(size({"> EHLO me", "< 250-mail.test", "< 250-SIZE 1", "< 250 STARTTLS", "> STARTTLS",
                  "< 220 go", "> EHLO me", "< 250-mail.test", "< 250 SIZE 2"}),
            "2")
      << "what counts is said after TLS";
}

TEST(SmtpDialogue, knows_the_stage_and_the_answer_to_it) {
  const auto expect = [](const std::vector<std::string>& lines, Stage stage, int code) {
    const Dialogue got = dialogue(lines);
    EXPECT_EQ(got.stage(), stage) << lines.back();
    EXPECT_EQ(got.code(), code) << lines.back();
  };
  std::vector<std::string> lines;
  const auto say = [&](const std::string& line, Stage stage, int code) {
    lines.push_back(line);
    expect(lines, stage, code);
  };
  say("", Stage::connect, 0);
  say("< 220 mail.test ESMTP", Stage::connect, 220);
  say("> EHLO me", Stage::hello, 0);
  say("< 250-mail.test", Stage::hello, 0);
  say("< 250 STARTTLS", Stage::hello, 250);
  say("> STARTTLS", Stage::tls, 0);
  say("< 220 go", Stage::tls, 220);
  say("> EHLO me", Stage::hello, 0);
  say("< 250-mail.test", Stage::hello, 0);
  say("< 250-SMTPUTF8", Stage::hello, 0);
  say("< 250 auth PLAIN", Stage::hello, 250);
  say("> AUTH PLAIN", Stage::login, 0);
  say("< 334 ", Stage::login, 334);
  say("> QUIT", Stage::login, 0);  // The line is base64 of a login, not the command QUIT.
  say("< 235 welcome", Stage::login, 235);
  say("> MAIL FROM:<a@b>", Stage::sender, 0);
  say("< 250 ok", Stage::sender, 250);
  say("> RCPT TO:<c@d>", Stage::recipients, 0);
  say("< 250 ok", Stage::recipients, 250);
  say("> DATA", Stage::data, 0);
  say("< 354 go on", Stage::content, 0);
  say("< 250 kept", Stage::content, 250);
  say("> QUIT", Stage::content, 250);
  say("< 221 bye", Stage::content, 250);
  EXPECT_EQ(dialogue(lines).text(), "kept");
  EXPECT_EQ(dialogue(lines).recipient(), 1U);
  EXPECT_TRUE(dialogue(lines).offers("SMTPUTF8"));
  EXPECT_TRUE(dialogue(lines).offers("AUTH"));
  EXPECT_FALSE(dialogue(lines).offers("STARTTLS")) << "only before TLS";
}

TEST(SmtpDialogue, takes_answers_as_they_come) {
  Dialogue several;
  several.sent("RCPT TO:<a@b>\r\n");
  several.received("550-5.1.1 nobody of\r\n550-that name\r\n550 here\n");
  EXPECT_EQ(several.code(), 550);
  EXPECT_EQ(several.text(), "5.1.1 nobody of that name here");
  Dialogue odd;
  for (const char* line : {"", "\r\n", "2", "25", "abc def", "\xff\xff\xff", "-12 x"})
    odd.received(line);
  EXPECT_EQ(odd.code(), 0);
  odd.received("250");
  EXPECT_EQ(odd.code(), 250);
  odd.sent("MAIL FROM:<a@b>");
  odd.received("250-" + std::string(5000, 'x') + "\n250 y");
  EXPECT_LE(odd.text().size(), 1100U);
}

// ---- what it means

Outcome make_outcome(Ending ending, bool park = false) {
  return judge(ending, {.server = "smtp://h:587",
                        .message_id = "<id@example.com>",
                        .deadline = std::chrono::minutes(15),
                        .park_unknown = park,
                        .unquoted = {"hush", "ada@example.com"}});
}

TEST(SmtpAnswer, only_the_answer_to_the_whole_mail_delivers_it) {
  EXPECT_EQ(make_outcome({.stage = Stage::content, .reply = 250, .whole = true}).kind, Kind::acked);
  EXPECT_EQ(
      make_outcome(
          {.code = CURLE_WEIRD_SERVER_REPLY, .stage = Stage::content, .reply = 251, .whole = true})
          .kind,
      Kind::acked);
  EXPECT_EQ(
      make_outcome({.code = CURLE_RECV_ERROR, .stage = Stage::content, .reply = 250, .whole = true})
          .kind,
      Kind::acked)
      << "what came after it does not matter";
  for (const Stage stage :
       {Stage::connect, Stage::hello, Stage::login, Stage::sender, Stage::recipients, Stage::data})
    EXPECT_NE(make_outcome({.stage = stage, .reply = 250}).kind, Kind::acked);
  EXPECT_EQ(make_outcome({.stage = Stage::content, .whole = true}).kind, Kind::unknown);
}

TEST(SmtpAnswer, a_refusal_is_about_what_was_asked) {
  struct Case {
    Stage stage;
    int reply;
    Kind kind;
  };
  for (const Case& one : std::vector<Case>{
           {Stage::connect, 421, Kind::blocked},     {Stage::connect, 554, Kind::blocked},
           {Stage::hello, 550, Kind::blocked},       {Stage::tls, 454, Kind::blocked},
           {Stage::login, 535, Kind::blocked},       {Stage::login, 454, Kind::blocked},
           {Stage::sender, 450, Kind::blocked},      {Stage::sender, 452, Kind::blocked},
           {Stage::sender, 530, Kind::blocked},      {Stage::sender, 550, Kind::blocked},
           {Stage::sender, 552, Kind::rejected},     {Stage::recipients, 421, Kind::retry},
           {Stage::recipients, 450, Kind::retry},    {Stage::recipients, 452, Kind::retry},
           {Stage::recipients, 530, Kind::blocked},  {Stage::recipients, 550, Kind::rejected},
           {Stage::recipients, 554, Kind::rejected}, {Stage::data, 451, Kind::retry},
           {Stage::data, 554, Kind::rejected},       {Stage::content, 421, Kind::retry},
           {Stage::content, 451, Kind::retry},       {Stage::content, 552, Kind::rejected},
           {Stage::content, 554, Kind::rejected}}) {
    const Outcome got = make_outcome({.code = CURLE_SEND_ERROR,
                                      .stage = one.stage,
                                      .reply = one.reply,
                                      .whole = one.stage == Stage::content});
    EXPECT_EQ(got.kind, one.kind) << one.reply << ": " << got.error.text();
    EXPECT_EQ(got.error.effect, Effect::none);
    EXPECT_EQ(got.error.origin, "smtp:" + std::to_string(one.reply));
    EXPECT_FALSE(got.error.hint.empty());
  }
}

TEST(SmtpAnswer, without_one_it_matters_how_far_the_mail_came) {
  for (const CURLcode code :
       {CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_OPERATION_TIMEDOUT, CURLE_GOT_NOTHING}) {
    for (const Stage stage : {Stage::connect, Stage::hello, Stage::tls, Stage::login})
      EXPECT_EQ(make_outcome({.code = code, .stage = stage}).kind, Kind::blocked);
    for (const Stage stage : {Stage::sender, Stage::recipients, Stage::data, Stage::content})
      EXPECT_EQ(make_outcome({.code = code, .stage = stage}).kind, Kind::retry);
    const Outcome doubt = make_outcome({.code = code, .stage = Stage::content, .whole = true});
    EXPECT_EQ(doubt.kind, Kind::unknown);
    EXPECT_EQ(doubt.error.effect, Effect::unknown);
    EXPECT_TRUE(contains(doubt.error.message, "<id@example.com>")) << doubt.error.text();
  }
  EXPECT_EQ(make_outcome({.code = CURLE_ABORTED_BY_CALLBACK}).kind, Kind::retry);
  EXPECT_EQ(
      make_outcome({.code = CURLE_ABORTED_BY_CALLBACK, .stage = Stage::content, .whole = true})
          .kind,
      Kind::unknown);
  for (const CURLcode code :
       {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_USE_SSL_FAILED,
        CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_LOGIN_DENIED}) {
    const Outcome got = make_outcome({.code = code});
    EXPECT_EQ(got.kind, Kind::blocked) << code;
    EXPECT_TRUE(contains(got.error.message, "smtp://h:587")) << got.error.text();
    EXPECT_FALSE(got.error.hint.empty());
  }
}

TEST(SmtpAnswer, what_is_in_doubt_can_be_parked_and_says_so) {
  const Outcome parked =
      make_outcome({.code = CURLE_RECV_ERROR, .stage = Stage::content, .whole = true}, true);
  EXPECT_EQ(parked.kind, Kind::rejected);
  EXPECT_EQ(parked.error.effect, Effect::unknown);
  EXPECT_TRUE(contains(parked.error.message, "may have sent it")) << parked.error.text();
  EXPECT_TRUE(contains(parked.error.hint, "outbox parked discard"));
  EXPECT_EQ(make_outcome({.code = CURLE_RECV_ERROR, .stage = Stage::content}, true).kind,
            Kind::retry)
      << "it was not sent";
}

TEST(SmtpAnswer, quotes_the_server_but_no_secret_and_no_address_of_a_person) {
  const Outcome got = make_outcome({.code = CURLE_SEND_ERROR,
                                    .stage = Stage::recipients,
                                    .reply = 550,
                                    .reply_text = "5.1.1 <ada@example.com>: no such user, hush",
                                    .recipient = 2});
  EXPECT_EQ(
      got.error.message,
      "smtp: smtp://h:587 answered 550 to RCPT (recipient 2): \"5.1.1 <***>: no such user, ***\"");
}

TEST(SmtpAnswer, a_connection_that_was_closed_while_idle_is_no_failure) {
  EXPECT_TRUE(was_stale({.code = CURLE_SEND_ERROR, .reused = true}));
  EXPECT_TRUE(was_stale({.code = CURLE_RECV_ERROR, .stage = Stage::sender, .reused = true}));
  EXPECT_TRUE(
      was_stale({.code = CURLE_SEND_ERROR, .stage = Stage::sender, .reply = 421, .reused = true}));
  EXPECT_FALSE(was_stale({.code = CURLE_RECV_ERROR, .stage = Stage::sender}));
  EXPECT_FALSE(
      was_stale({.code = CURLE_SEND_ERROR, .stage = Stage::sender, .reply = 450, .reused = true}));
  EXPECT_FALSE(was_stale({.code = CURLE_RECV_ERROR, .stage = Stage::recipients, .reused = true}));
  EXPECT_FALSE(
      was_stale({.code = CURLE_OPERATION_TIMEDOUT, .stage = Stage::sender, .reused = true}));
}

}  // namespace
}  // namespace outbox::test
