// Tests what mail servers do, what becomes of the events, and how a mail looks to its reader.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/sink/making.hpp"
#include "conformance/sink/sending.hpp"
#include "conformance/sink/smtp_server.hpp"
#include "event/time_text.hpp"
#include "support/eventually.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using Kind = Outcome::Kind;

class SmtpSink : public testing::Test {
 protected:
  void SetUp() override {
    if (no_smtp_server()) GTEST_SKIP() << kNoSmtpServer;
    start({});
  }
  void start(SmtpServer::Options options) { server_.emplace(std::move(options)); }

  [[nodiscard]] SubscriptionSpec spec(SinkSettings settings) const {
    SubscriptionSpec spec = make_spec("smtp", std::move(settings), "mails");
    spec.max_attempts = 1;
    SinkSettings& all = spec.sink_settings;
    const bool encrypted = all.contains("tls_ca") || all.contains("tls");
    if (!encrypted) all.emplace("tls", "off");
    all.emplace("url", fmt::format("smtp://127.0.0.1:{}", server_->port()));
    all.emplace("from", "Shop <shop@example.com>");
    all.emplace("to", "ada@example.com");
    all.emplace("deadline", "20s");
    all.emplace("connect_timeout", "5s");
    return spec;
  }
  [[nodiscard]] std::unique_ptr<Sink> make(SinkSettings settings = {}) const {
    return make_sink(spec(std::move(settings)));
  }
  /// The outcome of one message.
  [[nodiscard]] Outcome outcome(SinkSettings settings) const {
    Load load;
    load.add_many(1, 1);
    return Sending(make(std::move(settings)), load).outcome();
  }
  [[nodiscard]] Outcome outcome_for(const std::string& recipient,
                                    SinkSettings settings = {}) const {
    settings["to"] = recipient + "@example.com";
    return outcome(std::move(settings));
  }
  /// The error of open(), which must fail.
  [[nodiscard]] Error refusal(SinkSettings settings = {}) const {
    const auto sink = make(std::move(settings));
    const Status opened = sink->open();
    EXPECT_FALSE(opened.has_value());
    return opened ? Error{} : opened.error();
  }

  std::optional<SmtpServer> server_;
};

// ---- mails

/// Returns the only mail, and expects that the reader found nothing wrong with it.
ReceivedMail only_mail(const SmtpServer& server) {
  auto mails = server.mails();
  EXPECT_EQ(mails.size(), 1U);
  if (mails.empty()) return {};
  EXPECT_EQ(mails.front().defects, std::vector<std::string>{});
  EXPECT_EQ(mails.front().twice, std::vector<std::string>{});
  return std::move(mails.front());
}

TEST_F(SmtpSink, a_mail_looks_to_its_reader_as_it_was_written) {
  Load load;
  Load::Item& item = load.add("42",
                              "Sch\xc3\xb6ne Gr\xc3\xbc\xc3\x9f"
                              "e\r\n.\r\n..dots\r\n.. and dots\r\n" +
                                  std::string(3000, 'x') + "\r\ntrailing \t \r\n= equal\r\n\r\n",
                              "text/plain; charset=utf-8");
  item.event.payload =
      "{\"name\":\"Zo\xc3\xab \\\"Z\\\" M\xc3\xbcller, Dr.\",\"email\":\"zoe@example.com\"}";
  item.event.created_at = event::timestamp(1'700'000'000'000'000);
  item.event.aggregate_id = "42";
  item.headers.push_back({.name = "tenant", .value = "n\xc3\xb6rdlich \xe6\x97\xa5\xe6\x9c\xac"});
  const std::string subject =
      "Bestellung {aggregate_id} f\xc3\xbcr {json:name}: " + std::string(300, 'y');
  ASSERT_EQ(Sending(make({{"to", "{json:name} <{json:email}>,Ops <ops@example.com>"},
                          {"cc", "archive@example.com"},
                          {"reply_to", "Help <help@example.com>"},
                          {"from",
                           "B\xc3\xbc"
                           "cher & Co <shop@example.com>"},
                          {"subject", subject},
                          {"hello", "relay.example.com"},
                          {"x_headers", "tenant,outbox-*"}}),
                    load)
                .outcome()
                .kind,
            Kind::acked);
  const ReceivedMail mail = only_mail(*server_);
  EXPECT_EQ(mail.from, "shop@example.com");
  EXPECT_EQ(mail.to, (std::vector<std::string>{"zoe@example.com", "ops@example.com",
                                               "archive@example.com"}));
  EXPECT_EQ(mail.hello, "relay.example.com");
  EXPECT_FALSE(mail.utf8);
  const std::string name = "Zo\xc3\xab \"Z\" M\xc3\xbcller, Dr.";
  EXPECT_EQ(mail.people,
            (std::vector<std::pair<std::string, std::string>>{{"B\xc3\xbc"
                                                               "cher & Co",
                                                               "shop@example.com"},
                                                              {name, "zoe@example.com"},
                                                              {"Ops", "ops@example.com"},
                                                              {"", "archive@example.com"},
                                                              {"Help", "help@example.com"}}));
  EXPECT_EQ(mail.headers.at("subject"),
            "Bestellung 42 f\xc3\xbcr " + name + ": " + std::string(300, 'y'));
  EXPECT_EQ(mail.headers.at("message-id"), "<" + item.id_text + "@example.com>");
  EXPECT_EQ(mail.headers.at("auto-submitted"), "auto-generated");
  EXPECT_EQ(mail.headers.at("x-tenant"), item.headers.back().value);
  EXPECT_EQ(mail.headers.at("x-outbox-key"), "42");
  EXPECT_EQ(mail.headers.at("x-outbox-seq"), "1");
  EXPECT_EQ(mail.time, 1'700'000'000.0);
  EXPECT_EQ(mail.type, "text/plain");
  EXPECT_EQ(mail.charset, "utf-8");
  EXPECT_EQ(mail.body, item.body);
}

TEST_F(SmtpSink, every_body_arrives) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes.push_back(static_cast<char>(byte));
  const std::string japanese(3000, '\x00');
  std::string text;
  for (int i = 0; i < 500; ++i) text += "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\r\n";
  struct Case {
    std::string sent_as;
    std::string body;
    std::string type;
  };
  const std::vector<Case> cases{{"application/json", R"({"a":[1,2.50,"x"]})", "text/plain"},
                                {"", "", "text/plain"},
                                {"text/html", "<p class=\"a\">\r\n.\r\n</p>", "text/html"},
                                {"text/plain", text, "text/plain"},
                                {"text/plain", ".", "text/plain"},
                                {"text/plain", "\r\n.\r\n", "text/plain"},
                                {"text/plain", std::string(20'000, '.'), "text/plain"},
                                {"application/octet-stream", all_bytes, "application/octet-stream"},
                                {"application/pdf", std::string(100'000, '\0'), "application/pdf"}};
  Load load;
  for (const Case& one : cases) load.add(std::nullopt, one.body, one.sent_as);
  ASSERT_EQ(Sending(make({{"max_in_flight", "16"}}), load).outcome().kind, Kind::acked);
  auto mails = server_->mails();
  ASSERT_EQ(mails.size(), cases.size());
  std::sort(mails.begin(), mails.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(mails[i].body, cases[i].body) << i;
    EXPECT_EQ(mails[i].type, cases[i].type) << i;
    EXPECT_EQ(mails[i].defects, std::vector<std::string>{}) << i;
  }
}

TEST_F(SmtpSink, an_address_that_is_not_ascii_needs_a_server_that_takes_it) {
  const std::string to = "j\xc3\xbcrgen@example.com";
  ASSERT_EQ(outcome({{"to", to},
                     {"subject",
                      "Gr\xc3\xbc\xc3\x9f"
                      "e"}})
                .kind,
            Kind::acked);
  const auto mails = server_->mails();
  ASSERT_EQ(mails.size(), 1U);
  EXPECT_TRUE(mails[0].utf8);
  EXPECT_EQ(mails[0].to, std::vector<std::string>{to});
  EXPECT_EQ(mails[0].people.back().second, to);
  EXPECT_EQ(mails[0].headers.at("subject"),
            "Gr\xc3\xbc\xc3\x9f"
            "e");
  start({.utf8 = false});
  const Outcome refused = outcome({{"to", to}});
  EXPECT_EQ(refused.kind, Kind::rejected);
  EXPECT_TRUE(contains(refused.error.message, "SMTPUTF8")) << refused.error.text();
  EXPECT_EQ(outcome({}).kind, Kind::acked) << "any other mail goes";
  EXPECT_EQ(server_->count(), 1U);
}

TEST_F(SmtpSink, an_event_with_a_bad_address_is_rejected_alone) {
  Load load;
  load.add_many(3, 3);
  load.item(0).event.payload = R"({"email":"a@example.com"})";
  load.item(1).event.payload = R"({"email":"b@example.com>\r\nRCPT TO:<c@example.com"})";
  load.item(2).event.payload = R"({"email":"d@example.com"})";
  Sending sending(make({{"to", "{json:email}"}}), load);
  EXPECT_EQ(sending.relay().rejected(), std::vector<std::size_t>{1});
  EXPECT_EQ(sending.relay().acked(), 2U);
  EXPECT_EQ(server_->count(), 2U);
}

TEST_F(SmtpSink, a_mail_that_is_sent_again_has_the_same_bytes) {
  Load load;
  load.add("42", "gr\xc3\xbc\xc3\x9f dich", "text/plain");
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Sending(make(), load).outcome().kind, Kind::acked);
  const auto mails = server_->mails();
  ASSERT_EQ(mails.size(), 2U);
  EXPECT_EQ(mails[0].text, mails[1].text);
}

// ---- answers

TEST_F(SmtpSink, the_answer_and_what_it_was_to_decide) {
  for (const auto& [recipient, kind] : std::map<std::string, Kind>{{"rcpt-450", Kind::retry},
                                                                   {"rcpt-550", Kind::rejected},
                                                                   {"data-451", Kind::retry},
                                                                   {"data-554", Kind::rejected},
                                                                   {"end-250", Kind::acked},
                                                                   {"end-451", Kind::retry},
                                                                   {"end-552", Kind::rejected},
                                                                   {"end-554", Kind::rejected}}) {
    const Outcome got = outcome_for(recipient);
    EXPECT_EQ(got.kind, kind) << recipient << ": " << got.error.text();
    if (kind == Kind::acked) continue;
    EXPECT_EQ(got.error.origin, "smtp:" + recipient.substr(recipient.find('-') + 1));
    EXPECT_FALSE(contains(got.error.text(), recipient)) << got.error.text();
  }
  EXPECT_EQ(server_->count(), 1U);
}

TEST_F(SmtpSink, a_refusal_before_the_recipients_blocks) {
  for (const char* answer : {"421 busy", "451 later", "550 no"}) {
    server_->plan({{"mail", answer}});
    const Outcome got = outcome({});
    EXPECT_EQ(got.kind, Kind::blocked) << answer << ": " << got.error.text();
    EXPECT_TRUE(contains(got.error.message, "to MAIL")) << got.error.text();
  }
  server_->plan({{"mail", "552 5.3.4 too large"}});
  EXPECT_EQ(outcome({}).kind, Kind::rejected);
  server_->plan({{"greeting", "554 5.3.2 not today"}});
  const Error got = refusal();
  EXPECT_EQ(got.origin, "smtp:554") << got.text();
  EXPECT_TRUE(contains(got.message, "not today")) << got.text();
  EXPECT_FALSE(got.hint.empty());
}

TEST_F(SmtpSink, one_recipient_that_is_refused_refuses_the_mail_for_all) {
  const Outcome got = outcome({{"to", "ada@example.com,rcpt-550@example.com,bob@example.com"}});
  EXPECT_EQ(got.kind, Kind::rejected);
  EXPECT_TRUE(contains(got.error.message, "recipient 2")) << got.error.text();
  EXPECT_EQ(server_->count(), 0U);
}

TEST_F(SmtpSink, without_an_answer_it_matters_whether_the_server_has_the_mail) {
  for (const auto& [recipient, kind] : std::map<std::string, Kind>{{"rcpt-close", Kind::retry},
                                                                   {"data-close", Kind::retry},
                                                                   {"end-close", Kind::unknown}}) {
    const Outcome got = outcome_for(recipient);
    EXPECT_EQ(got.kind, kind) << recipient << ": " << got.error.text();
  }
  EXPECT_EQ(server_->count(), 1U);
  for (const auto& [recipient, kind] : std::map<std::string, Kind>{
           {"rcpt-hang", Kind::retry}, {"data-hang", Kind::retry}, {"end-hang", Kind::unknown}}) {
    const Outcome got = outcome_for(recipient, {{"deadline", "1s"}, {"connect_timeout", "1s"}});
    EXPECT_EQ(got.kind, kind) << recipient << ": " << got.error.text();
  }
  EXPECT_EQ(server_->count(), 2U);
  EXPECT_TRUE(contains(outcome_for("end-close").error.message, "Message-ID <"));
  Load large;
  large.add("1", std::string(1'400'000, '\xff'), "application/octet-stream");
  EXPECT_EQ(Sending(make({{"to", "end-close@example.com"}}), large).outcome().kind, Kind::unknown);
}

TEST_F(SmtpSink, a_connection_that_breaks_within_a_mail_delivers_nothing) {
  // The mail is so large that it does not fit into the buffers on the way.
  start({.most_bytes = 100'000'000});
  TcpGate gate(server_->port());
  Load load;
  load.add("1", std::string(30'000'000, 'x'), "application/octet-stream");
  const auto sink = make({{"url", fmt::format("smtp://127.0.0.1:{}", gate.port())}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  gate.cut_after(100'000);
  ASSERT_EQ(relay.offer(1), 1U);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1U);
  EXPECT_EQ(relay.failures().front().outcome.kind, Kind::retry)
      << relay.failures().front().outcome.error.text();
  EXPECT_EQ(server_->count(), 0U);
  sink->close();
}

TEST_F(SmtpSink, what_is_in_doubt_can_be_left_to_a_person) {
  const Outcome got = outcome_for("end-close", {{"on_unknown", "park"}});
  EXPECT_EQ(got.kind, Kind::rejected);
  EXPECT_EQ(got.error.effect, Effect::unknown);
  EXPECT_TRUE(contains(got.error.message, "may have sent it")) << got.error.text();
  EXPECT_EQ(outcome_for("data-close", {{"on_unknown", "park"}}).kind, Kind::retry);
}

TEST_F(SmtpSink, a_server_that_takes_its_time_is_waited_for) {
  EXPECT_EQ(outcome_for("end-slow").kind, Kind::acked);
}

// ---- connections

TEST_F(SmtpSink, uses_its_connections_again) {
  TcpGate gate(server_->port());
  Load load;
  load.add_many(200, 50);
  const auto sink = make({{"url", fmt::format("smtp://127.0.0.1:{}", gate.port())}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_LE(gate.connections(), 4 + 1) << "one for each mail at a time, and one to open it";
  sink->close();
}

TEST_F(SmtpSink, a_connection_closed_while_idle_costs_nothing) {
  TcpGate gate(server_->port());
  Load load;
  load.add_many(20, 1);
  const auto sink = make({{"url", fmt::format("smtp://127.0.0.1:{}", gate.port())}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  while (relay.acked() < load.size()) {
    ASSERT_EQ(relay.offer(1), 1U);
    ASSERT_TRUE(relay.drain());
    ASSERT_TRUE(relay.failures().empty()) << relay.failures().front().outcome.error.text();
    gate.cut();
  }
  EXPECT_EQ(server_->count(), load.size());
  sink->close();
}

TEST_F(SmtpSink, so_does_one_that_the_server_gave_notice_of) {
  server_->plan({{"end", "leave"}});
  Load load;
  load.add_many(20, 1);
  Sending sending(make(), load);
  ASSERT_TRUE(sending.relay().deliver());
  EXPECT_TRUE(sending.relay().failures().empty()) << sending.outcome().error.text();
  EXPECT_EQ(server_->count(), load.size());
}

TEST_F(SmtpSink, says_goodbye_and_does_not_wait_for_the_answer) {
  server_->plan({{"quit", "hang"}});
  Load load;
  load.add_many(1, 1);
  const auto sink = make({{"to", "rcpt-550@example.com"}, {"deadline", "10min"}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  ASSERT_EQ(relay.offer(1), 1U);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.rejected().size(), 1U);
  EXPECT_TRUE(eventually([&] { return server_->goodbyes() == 2; }))
      << "when it was opened, and now";
  const auto other = make({{"deadline", "10min"}});
  Load fine;
  fine.add_many(2, 2);
  MiniRelay mails(*other, fine);
  ASSERT_TRUE(mails.deliver());
  const auto from = std::chrono::steady_clock::now();
  other->close();
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(10));
  EXPECT_TRUE(eventually([&] { return server_->goodbyes() >= 4; }));
}

TEST_F(SmtpSink, a_mail_whose_answer_hangs_holds_up_no_other) {
  Load load;
  load.add_many(41, 41);
  load.item(0).event.payload = R"({"email":"end-hang@example.com"})";
  for (std::size_t i = 1; i < load.size(); ++i)
    load.item(i).event.payload = R"({"email":"ada@example.com"})";
  const auto sink = make({{"to", "{json:email}"}, {"max_in_flight", "2"}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  while (relay.acked() < load.size() - 1) {
    relay.offer(2);
    relay.receive();
    ASSERT_TRUE(relay.failures().empty()) << relay.failures().front().outcome.error.text();
  }
  EXPECT_EQ(relay.in_flight(), 1U);
  ASSERT_TRUE(eventually([&] { return server_->count() == load.size(); }));
  // Giving the last message up does not wait for its deadline.
  const auto from = std::chrono::steady_clock::now();
  sink->purge();
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(10));
  relay.receive();
  ASSERT_EQ(relay.failures().size(), 1U);
  EXPECT_EQ(relay.failures().front().outcome.kind, Kind::unknown);
  sink->close();
}

// ---- TLS and the login

class SmtpTls : public SmtpSink {
 protected:
  void SetUp() override {
    SmtpSink::SetUp();
    if (IsSkipped()) return;
    certificate_ = make_certificate(folder_);
    other_ = make_certificate(elsewhere_, "DNS:elsewhere.example");
    if (!certificate_ || !other_) GTEST_SKIP() << "needs openssl, to make certificates";
    start({.certificate = certificate_, .login = true});
  }
  [[nodiscard]] SinkSettings login(SinkSettings settings = {}) const {
    settings.emplace("tls_ca", certificate_->file);
    settings.emplace("username", "me");
    settings.emplace("password", "right");
    return settings;
  }

  TempDir folder_;
  TempDir elsewhere_;
  std::optional<Certificate> certificate_;
  std::optional<Certificate> other_;
};

TEST_F(SmtpTls, mails_go_over_starttls_with_a_login) {
  ASSERT_EQ(outcome(login()).kind, Kind::acked);
  const ReceivedMail mail = only_mail(*server_);
  EXPECT_TRUE(mail.tls);
  EXPECT_EQ(mail.user, "me");
}

TEST_F(SmtpTls, a_lost_answer_is_in_doubt_there_too) {
  EXPECT_EQ(outcome(login({{"to", "end-close@example.com"}})).kind, Kind::unknown);
  EXPECT_EQ(outcome(login({{"to", "data-close@example.com"}})).kind, Kind::retry);
  EXPECT_EQ(server_->count(), 1U);
}

TEST_F(SmtpTls, or_over_tls_from_the_first_byte) {
  start({.certificate = certificate_, .implicit = true, .login = true});
  ASSERT_EQ(outcome(login({{"url", fmt::format("smtps://me:right@localhost:{}", server_->port())},
                           {"username", ""},
                           {"password", ""}}))
                .kind,
            Kind::acked);
  EXPECT_EQ(only_mail(*server_).user, "me");
}

TEST_F(SmtpTls, nothing_is_sent_to_a_server_that_is_not_who_it_should_be) {
  const Error unknown = refusal(login({{"tls_ca", other_->file}}));
  EXPECT_TRUE(contains(unknown.hint, "smtp.tls_ca")) << unknown.text();
  start({.certificate = other_, .login = true});
  const Error wrong_name = refusal(login({{"tls_ca", other_->file}}));
  EXPECT_TRUE(contains(wrong_name.hint, "certificate")) << wrong_name.text();
  EXPECT_EQ(outcome(login({{"insecure_tls", "true"}})).kind, Kind::acked);
}

TEST_F(SmtpTls, a_server_without_tls_is_refused_and_gets_no_password) {
  start({});
  const Error none = refusal({{"tls", "required"}, {"username", "me"}, {"password", "right"}});
  EXPECT_TRUE(contains(none.hint, "STARTTLS")) << none.text();
  start({.certificate = certificate_, .login = true});
  server_->plan({{"starttls", "454 not now"}});
  const Error denied = refusal(login());
  EXPECT_EQ(denied.origin, "smtp:454") << denied.text();
  server_->plan({{"ehlo", "504 5.5.2 what name is that"}});
  const Error name = refusal(login());
  EXPECT_EQ(name.origin, "smtp:504") << name.text();
  EXPECT_TRUE(contains(name.hint, "smtp.hello")) << name.text();
}

TEST_F(SmtpTls, a_login_that_is_refused_blocks) {
  const Error wrong = refusal(login({{"password", "quite-wrong"}}));
  EXPECT_EQ(wrong.origin, "smtp:535") << wrong.text();
  EXPECT_EQ(wrong.code, Errc::permission_denied);
  EXPECT_FALSE(contains(wrong.text(), "quite-wrong"));
  const Outcome without = outcome({{"tls_ca", certificate_->file}});
  EXPECT_EQ(without.kind, Kind::blocked);
  EXPECT_EQ(without.error.origin, "smtp:530") << without.error.text();
  start({.certificate = certificate_});
  const Error none = refusal(login());
  EXPECT_TRUE(contains(none.message, "offers no login")) << none.text();
}

}  // namespace
}  // namespace outbox::test
