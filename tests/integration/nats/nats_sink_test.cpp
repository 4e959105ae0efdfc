// Tests the NATS sink with a real server: what JetStream refuses, duplicates, rights, TLS, servers
// that hang.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "conformance/sink/suite.hpp"
#include "event/headers.hpp"
#include "integration/nats/server.hpp"
#include "integration/nats/sink_maker.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class NatsSinkTest : public testing::Test {
 protected:
  void SetUp() override { OUTBOX_NEEDS_NATS(); }

  /// Expects that there are failures, all of this kind and with these words.
  static void expect_all(const MiniRelay& relay, Outcome::Kind kind, std::string_view words) {
    ASSERT_FALSE(relay.failures().empty());
    for (const auto& failure : relay.failures()) {
      EXPECT_EQ(failure.outcome.kind, kind) << failure.outcome.error.text();
      EXPECT_NE(failure.outcome.error.text().find(words), std::string::npos)
          << failure.outcome.error.text();
    }
  }
  static std::string refusal(Sink& sink) {
    const Status opened = sink.open();
    EXPECT_FALSE(opened.has_value());
    return opened ? "" : opened.error().text();
  }
};

// ---- what arrives

TEST_F(NatsSinkTest, a_message_has_its_id_its_key_and_the_formats_headers) {
  NatsStream stream(*shared_nats());
  Load load(stream.subject("order.placed"));
  load.add("42", "{}");
  load.item(0).headers.push_back({.name = "traceparent", .value = "00-ab"});
  load.item(0).headers.push_back({.name = "empty", .value = ""});
  const auto sink = make_nats_sink(stream);
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  const auto stored = stream.read();
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].subject, stream.subject("order.placed"));
  EXPECT_EQ(stored[0].body, "{}");
  EXPECT_EQ(stored[0].headers,
            (std::map<std::string, std::string>{{"Nats-Msg-Id", load.item(0).id_text + ".1.orders"},
                                                {"Nats-Expected-Stream", stream.name()},
                                                {"outbox-key", "42"},
                                                {"outbox-id", load.item(0).id_text},
                                                {"outbox-seq", "1"},
                                                {"content-type", "application/json"},
                                                {"traceparent", "00-ab"},
                                                {"empty", ""}}));
}

TEST_F(NatsSinkTest, what_is_sent_again_within_the_window_is_stored_once) {
  NatsStream stream(*shared_nats());
  Load load(stream.subject());
  load.add_many(500, 50);
  for (int round = 0; round < 3; ++round) {
    const auto sink = make_nats_sink(stream);
    MiniRelay relay(*sink, load);
    ASSERT_TRUE(relay.deliver());
    EXPECT_TRUE(relay.failures().empty()) << "a duplicate counts as delivered";
    sink->close();
  }
  EXPECT_EQ(stream.read().size(), load.size());
}

TEST_F(NatsSinkTest, events_whose_answers_were_lost_are_stored_once) {
  NatsStream stream(*shared_nats());
  TcpGate gate(stream.server().port);
  Load load(stream.subject());
  load.add_many(200, 200);
  const auto sink = make_nats_sink(stream, nats_settings(stream.server(), gate.port()));
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  gate.set(TcpGate::Mode::answers_lost);
  relay.offer_all();
  ASSERT_TRUE(eventually([&] { return stream.read().size() == load.size(); }));
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 0U);
  expect_all(relay, Outcome::Kind::unknown, "");
  gate.set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(stream.read().size(), load.size());
}

TEST_F(NatsSinkTest, a_replay_within_the_window_is_stored_again) {
  NatsStream stream(*shared_nats());
  Load load(stream.subject());
  load.add_many(20, 5);
  const auto sink = make_nats_sink(stream);
  {
    MiniRelay relay(*sink, load);
    ASSERT_TRUE(relay.deliver());
  }
  const std::string headers = event::with_header("{}", event::kReplayHeader, "3");
  for (std::size_t i = 0; i < load.size(); ++i) load.item(i).event.headers = headers;
  for (int round = 0; round < 2; ++round) {
    MiniRelay relay(*sink, load);
    ASSERT_TRUE(relay.deliver());
  }
  EXPECT_EQ(stream.read().size(), 2 * load.size());
}

TEST_F(NatsSinkTest, two_subscriptions_can_send_an_event_to_one_stream) {
  NatsStream stream(*shared_nats());
  Load load(stream.subject());
  load.add_many(20, 5);
  for (const char* name : {"orders", "audit"}) {
    const auto sink = make_nats_sink(stream, {}, name);
    MiniRelay relay(*sink, load);
    ASSERT_TRUE(relay.deliver());
  }
  EXPECT_EQ(stream.read().size(), 2 * load.size());
}

// ---- what JetStream refuses

TEST_F(NatsSinkTest, a_subject_of_another_stream_blocks) {
  NatsStream stream(*shared_nats());
  NatsStream other(*shared_nats());
  Load load(other.subject());
  load.add_many(20, 20);
  const auto sink = make_nats_sink(stream);
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  relay.offer_all();
  ASSERT_TRUE(relay.drain());
  expect_all(relay, Outcome::Kind::blocked, "expected stream does not match");
  EXPECT_TRUE(other.read().empty());
}

TEST_F(NatsSinkTest, without_a_stream_in_the_settings_any_takes_its_subjects) {
  NatsStream stream(*shared_nats());
  NatsStream other(*shared_nats());
  Load load(stream.subject());
  load.add_many(20, 20);
  for (std::size_t i = 10; i < 20; ++i) load.item(i).topic = other.subject();
  const auto sink = make_nats_sink(stream, {{"stream", "-"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  EXPECT_EQ(stream.read().size(), 10U);
  EXPECT_EQ(other.read().size(), 10U);
}

TEST_F(NatsSinkTest, a_stream_that_does_not_exist_is_named_when_the_sink_is_opened) {
  NatsStream stream(*shared_nats());
  const auto sink = make_nats_sink(stream, {{"stream", "NONE_OF_THOSE"}});
  const std::string why = refusal(*sink);
  EXPECT_NE(why.find("stream NONE_OF_THOSE: stream not found"), std::string::npos) << why;
  EXPECT_NE(why.find("(hint: create a stream"), std::string::npos) << why;
}

TEST_F(NatsSinkTest, a_stream_that_never_confirms_is_refused) {
  NatsStream stream(*shared_nats(), {{"no_ack", true}});
  const auto sink = make_nats_sink(stream);
  EXPECT_NE(refusal(*sink).find("no_ack"), std::string::npos);
}

TEST_F(NatsSinkTest, a_full_stream_blocks_and_goes_on_when_it_is_purged) {
  NatsStream stream(*shared_nats(), {{"max_msgs", 100}});
  Load load(stream.subject());
  load.add_many(250, 250);
  const auto sink = make_nats_sink(stream);
  MiniRelay relay(*sink, load);
  std::vector<std::size_t> arrived;
  const auto empty = [&] {
    for (const std::size_t place : places(stream.arrived(), load)) arrived.push_back(place);
    stream.purge();
  };
  ASSERT_TRUE(relay.deliver(seconds(60), empty));
  expect_all(relay, Outcome::Kind::blocked, "maximum messages exceeded");
  empty();
  expect_complete_and_ordered(arrived, load);
  EXPECT_EQ(arrived.size(), load.size()) << "none twice";
}

TEST_F(NatsSinkTest, a_message_larger_than_the_stream_allows_is_rejected_alone) {
  NatsStream stream(*shared_nats(), {{"max_msg_size", 2000}});
  Load load(stream.subject());
  load.add_many(20, 20);
  load.add("large", std::string(3000, 'x'), "text/plain");
  load.add_many(20, 20);
  const auto sink = make_nats_sink(stream);
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{20});
  expect_all(relay, Outcome::Kind::rejected, "max_msg_size");
  expect_complete_and_ordered(places(stream.arrived(), load), load, {20});
}

TEST_F(NatsSinkTest, a_message_larger_than_the_server_allows_does_not_break_the_connection) {
  NatsStream stream(*shared_nats());
  TcpGate gate(stream.server().port);
  Load load(stream.subject());
  load.add_many(20, 20);
  load.add("large", std::string(std::size_t{1} << 20U, 'x'), "text/plain");
  load.add_many(20, 20);
  const auto sink = make_nats_sink(stream, nats_settings(stream.server(), gate.port()));
  MiniRelay relay(*sink, load);
  const Status opened = sink->open();
  ASSERT_TRUE(opened) << opened.error().text();
  const int connections = gate.connections();
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{20});
  expect_all(relay, Outcome::Kind::rejected, "max_payload");
  EXPECT_EQ(gate.connections(), connections);
}

TEST_F(NatsSinkTest, headers_that_jetstream_cannot_keep_are_the_events_fault) {
  NatsStream stream(*shared_nats());
  Load load(stream.subject());
  load.add_many(10, 10);
  const std::string large(70'000, 'x');
  load.item(4).headers.push_back({.name = "large", .value = large});
  load.item(7).headers.push_back({.name = "Nats-Rollup", .value = "all"});
  const auto sink = make_nats_sink(stream);
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(relay.rejected(), (std::vector<std::size_t>{4, 7}));
  expect_complete_and_ordered(places(stream.arrived(), load), load, {4, 7});
}

TEST_F(NatsSinkTest, a_stream_deleted_under_load_blocks_until_it_is_there_again) {
  NatsStream stream(*shared_nats());
  Load load(stream.subject());
  load.add_many(3000, 1000);
  const auto sink = make_nats_sink(stream);
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  relay.offer_all();
  stream.remove();
  ASSERT_TRUE(relay.drain());
  relay.offer_all();  // what was still to be sent of keys that are not held
  ASSERT_TRUE(relay.drain());
  ASSERT_FALSE(relay.failures().empty());
  // Messages that the stream had received and not stored yet get no answer.
  for (const auto& failure : relay.failures())
    EXPECT_NE(failure.outcome.kind, Outcome::Kind::rejected) << failure.outcome.error.text();
  EXPECT_NE(refusal(*sink).find("stream not found"), std::string::npos);
  std::vector<std::size_t> gone;  // these are lost with the stream
  for (std::size_t place = 0; place < load.size(); ++place) {
    if (relay.is_acked(place)) gone.push_back(place);
  }
  stream.create();
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(stream.arrived(), load), load, gone);
}

// ---- other programs

TEST_F(NatsSinkTest, an_answer_that_is_not_of_jetstream_confirms_nothing) {
  NatsStream stream(*shared_nats());
  const std::string subject = "core." + stream.name();
  NatsResponder responder(stream.server(), subject);
  Load load(stream.subject());
  load.add_many(10, 10);
  load.item(3).topic = subject;
  const auto sink = make_nats_sink(stream, {{"deadline", "3s"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  relay.offer_all();
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 9U);
  expect_all(relay, Outcome::Kind::unknown, "another program answered");
}

TEST_F(NatsSinkTest, one_event_without_an_answer_does_not_end_the_connection) {
  NatsStream stream(*shared_nats());
  TcpGate gate(stream.server().port);
  const std::string subject = "core." + stream.name();
  NatsResponder responder(stream.server(), subject);
  Load load(stream.subject());
  load.add_many(1, 1);
  load.item(0).topic = subject;
  for (int i = 0; i < 5000; ++i) load.add(fmt::format("x{}", i), "x", "text/plain");
  NatsGiven settings = nats_settings(stream.server(), gate.port());
  settings["deadline"] = "3s";
  const auto sink = make_nats_sink(stream, settings);
  MiniRelay relay(*sink, load);
  const Status opened = sink->open();
  ASSERT_TRUE(opened) << opened.error().text();
  const int connections = gate.connections();
  while (relay.failures().empty()) {  // something is answered all the time
    relay.offer(1);
    relay.receive();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1U);
  EXPECT_EQ(relay.failures().front().place, 0U);
  EXPECT_TRUE(sink->open());
  EXPECT_EQ(gate.connections(), connections);
}

// ---- servers

TEST_F(NatsSinkTest, the_first_of_several_servers_that_answers_is_used) {
  NatsStream stream(*shared_nats());
  TcpGate dead(stream.server().port);
  dead.set(TcpGate::Mode::refused);
  TcpGate silent(stream.server().port);
  silent.set(TcpGate::Mode::blackhole);
  Load load(stream.subject());
  load.add_many(100, 10);
  const auto sink = make_nats_sink(
      stream, {{"url", fmt::format("nats://127.0.0.1:{},nats://127.0.0.1:{},nats://127.0.0.1:{}",
                                   dead.port(), silent.port(), stream.server().port)}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
}

TEST_F(NatsSinkTest, a_server_without_jetstream_is_refused) {
  OwnNats nats("", false);
  for (const char* stream : {"ORDERS", "-"}) {
    const auto sink = make_nats_sink({{"stream", stream}}, nats_settings(nats.server()));
    const std::string why = refusal(*sink);
    EXPECT_NE(why.find("JetStream is not enabled"), std::string::npos) << why;
    EXPECT_NE(why.find("(hint: enable it"), std::string::npos) << why;
  }
}

TEST_F(NatsSinkTest, a_connection_that_is_lost_while_idle_is_made_again) {
  NatsStream stream(*shared_nats());
  TcpGate gate(stream.server().port);
  Load load(stream.subject());
  load.add_many(300, 30);
  const auto sink = make_nats_sink(stream, nats_settings(stream.server(), gate.port()));
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  relay.offer(100);
  ASSERT_TRUE(relay.drain());
  gate.cut();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(stream.arrived(), load), load);
}

/// A server that introduces itself and then hangs. cnats would wait for ever, and before 3.8 would
/// use all of a core.
class HangingServer {
 public:
  explicit HangingServer(bool tls) : tls_(tls) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { serve(); });
  }
  HangingServer(const HangingServer&) = delete;
  HangingServer& operator=(const HangingServer&) = delete;
  ~HangingServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (const int client : clients_) ::close(client);
    ::close(listener_);
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  void serve() {
    const std::string info = fmt::format(
        R"(INFO {{"server_id":"x","version":"2.9.10","proto":1,"headers":true,"tls_required":{},"max_payload":1048576}})",
        tls_);
    while (true) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      clients_.push_back(client);
      (void)::send(client, (info + "\r\n").data(), info.size() + 2, MSG_NOSIGNAL);
    }
  }

  const bool tls_;
  int listener_{-1};
  int port_{0};
  std::vector<int> clients_;
  std::jthread thread_;
};

[[maybe_unused]] double cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

/// The server hangs before the handshake of TLS, and after the client's CONNECT.
class NatsHanging : public NatsSinkTest, public testing::WithParamInterface<const char*> {};

TEST_P(NatsHanging, is_given_up_again_and_again) {
  HangingServer hanging(GetParam() == std::string_view("tls"));
  NatsGiven settings = nats_settings({.port = hanging.port(), .user = "u", .password = "p"});
  settings["url"] = fmt::format("{}://127.0.0.1:{}", GetParam(), hanging.port());
  settings["connect_timeout"] = "500ms";
  const auto sink = make_nats_sink({}, settings);
  [[maybe_unused]] const double before = cpu_seconds();
  const auto from = Clock::now();
  for (int i = 0; i < 5; ++i)
    EXPECT_NE(refusal(*sink).find("does not complete the connection"), std::string::npos);
  EXPECT_LT(Clock::now() - from, seconds(30));
#ifndef __SANITIZE_THREAD__  // which takes as much
  EXPECT_LT(cpu_seconds() - before, 1.5) << "it waits, it does not spin";
#endif
  std::string why;
  for (int i = 0; i < 20; ++i) why = refusal(*sink);
  EXPECT_NE(why.find("16 earlier attempts"), std::string::npos) << why;
}

INSTANTIATE_TEST_SUITE_P(Schemes, NatsHanging, testing::Values("nats", "tls"),
                         [](const auto& scheme) { return std::string(scheme.param); });

TEST_F(NatsSinkTest, sending_does_not_wait_for_a_server_that_stops_reading) {
  NatsStream stream(*shared_nats());
  TcpGate gate(stream.server().port);
  Load load(stream.subject());
  for (int i = 0; i < 200; ++i)
    load.add(fmt::format("k{}", i), std::string(200'000, 'x'), "text/plain");
  NatsGiven settings = nats_settings(stream.server(), gate.port());
  settings["deadline"] = "10min";
  const auto sink = make_nats_sink(stream, settings);
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  gate.set(TcpGate::Mode::stalled);
  const auto from = Clock::now();
  relay.offer_all();
  EXPECT_EQ(relay.in_flight(), load.size());
  sink->purge();
  relay.receive();
  EXPECT_LT(Clock::now() - from, seconds(20)) << "not the deadline";
  EXPECT_EQ(relay.in_flight(), 0U);
  std::size_t unsent = 0;
  for (const auto& failure : relay.failures()) {
    if (failure.outcome.kind == Outcome::Kind::retry) ++unsent;
  }
  EXPECT_GT(unsent, 0U) << "what the client never got was not delivered";
  gate.set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(stream.arrived(), load), load);
}

// ---- rights

class NatsRights : public NatsSinkTest {
 protected:
  void SetUp() override {
    NatsSinkTest::SetUp();
    if (IsSkipped()) return;
    nats_ = std::make_unique<OwnNats>(R"(
authorization {
  users = [
    { user: root, password: root }
    { user: narrow, password: p, permissions: { publish: "*.allowed", subscribe: "_INBOX.>" } }
    { user: blind, password: p, permissions: { publish: ">", subscribe: "_INBOX_mine.>" } }
  ]
}
)");
    stream_ = std::make_unique<NatsStream>(nats_->server());
  }
  [[nodiscard]] std::unique_ptr<Sink> make_as(const std::string& user, NatsGiven given = {}) const {
    NatsGiven defaults = nats_settings(nats_->server(user, "p"));
    defaults["stream"] = stream_->name();
    return make_nats_sink(std::move(given), defaults);
  }

  std::unique_ptr<OwnNats> nats_;
  std::unique_ptr<NatsStream> stream_;
};

TEST_F(NatsRights, a_user_who_may_only_publish_can_deliver) {
  Load load(stream_->subject("allowed"));
  load.add_many(100, 10);
  const auto sink = make_as("narrow");
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  expect_complete_and_ordered(places(stream_->arrived(), load), load);
}

TEST_F(NatsRights, a_subject_that_may_not_be_published_to_blocks_and_is_named) {
  Load load(stream_->subject("allowed"));
  load.add_many(100, 100);
  for (std::size_t i = 0; i < 100; i += 10) load.item(i).topic = stream_->subject("forbidden");
  const auto sink = make_as("narrow");
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  relay.offer_all();
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.failures().size(), 10U);
  expect_all(relay, Outcome::Kind::blocked,
             "may not publish to subject " + stream_->subject("forbidden"));
  EXPECT_EQ(relay.acked(), 90U);
}

TEST_F(NatsRights, a_user_who_may_not_subscribe_to_its_inbox_is_refused_and_can_have_another) {
  const auto blind = make_as("blind");
  const std::string why = refusal(*blind);
  EXPECT_NE(why.find("Permissions Violation for Subscription"), std::string::npos) << why;
  Load load(stream_->subject());
  load.add_many(10, 10);
  const auto sink = make_as("blind", {{"inbox_prefix", "_INBOX_mine"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
}

// ---- TLS

class NatsTls : public NatsSinkTest {
 protected:
  void SetUp() override {
    NatsSinkTest::SetUp();
    if (IsSkipped()) return;
    if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs openssl";
    certify("good", "IP:127.0.0.1,DNS:localhost");
    certify("other", "DNS:elsewhere.example");
  }
  void certify(const std::string& name, const std::string& hosts) {
    const std::string command = fmt::format(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test "
        "-addext subjectAltName={} -keyout {} -out {} 2>/dev/null",
        hosts, folder_.file(name + ".key"), folder_.file(name + ".pem"));
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  [[nodiscard]] std::string with_tls(const std::string& name) const {
    return fmt::format("tls {{ cert_file = \"{}\", key_file = \"{}\" }}\n",
                       folder_.file(name + ".pem"), folder_.file(name + ".key"));
  }
  [[nodiscard]] static NatsGiven make_settings(const OwnNats& nats, int port = 0) {
    NatsGiven settings = nats_settings(nats.server());
    settings["url"] = fmt::format("tls://127.0.0.1:{}", port == 0 ? nats.server().port : port);
    return settings;
  }
  /// The error of open(); empty if the sink opened.
  [[nodiscard]] static std::string try_open(const NatsGiven& settings) {
    const Status opened = make_nats_sink({}, settings)->open();
    return opened ? "" : opened.error().text();
  }

  TempDir folder_;
};

TEST_F(NatsTls, the_servers_certificate_is_checked) {
  OwnNats nats(with_tls("good"));
  NatsGiven settings = make_settings(nats);
  const std::string why = try_open(settings);
  EXPECT_NE(why.find("self-signed certificate"), std::string::npos) << why;
  EXPECT_NE(why.find("nats.tls_ca"), std::string::npos) << why;
  settings["tls_ca"] = folder_.file("good.pem");
  EXPECT_EQ(try_open(settings), "");
  settings["tls_ca"] = folder_.file("other.pem");
  EXPECT_NE(try_open(settings), "");
  settings["insecure_tls"] = "true";
  EXPECT_EQ(try_open(settings), "");
  settings["tls_ca"] = folder_.file("no such file");
  EXPECT_NE(try_open(settings), "");
}

TEST_F(NatsTls, a_certificate_for_another_host_is_refused) {
  OwnNats nats(with_tls("other"));
  NatsGiven settings = make_settings(nats);
  settings["tls_ca"] = folder_.file("other.pem");
  EXPECT_NE(try_open(settings), "");
}

TEST_F(NatsTls, a_server_that_asks_for_tls_is_checked_with_any_address) {
  OwnNats nats(with_tls("good"));
  NatsGiven settings = nats_settings(nats.server());
  EXPECT_NE(try_open(settings).find("self-signed certificate"), std::string::npos);
  settings["tls_ca"] = folder_.file("good.pem");
  EXPECT_EQ(try_open(settings), "");
}

TEST_F(NatsTls, a_server_without_tls_is_refused) {
  NatsGiven settings = nats_settings(*shared_nats());
  settings["url"] = fmt::format("tls://127.0.0.1:{}", shared_nats()->port);
  const std::string why = try_open(settings);
  EXPECT_NE(why.find("the server has no TLS"), std::string::npos) << why;
}

TEST_F(NatsTls, a_client_certificate_is_presented) {
  OwnNats nats(fmt::format(
      "tls {{ cert_file = \"{}\", key_file = \"{}\", ca_file = \"{}\", verify = true }}\n",
      folder_.file("good.pem"), folder_.file("good.key"), folder_.file("other.pem")));
  NatsGiven settings = make_settings(nats);
  settings["tls_ca"] = folder_.file("good.pem");
  EXPECT_NE(try_open(settings), "");
  settings["tls_certificate"] = folder_.file("other.pem");
  settings["tls_key"] = folder_.file("other.key");
  EXPECT_EQ(try_open(settings), "");
}

/// A sink for a stream on a server with TLS, behind a gate.
class NatsTlsGate : public NatsTls {
 protected:
  void SetUp() override {
    NatsTls::SetUp();
    if (IsSkipped()) return;
    nats_ = std::make_unique<OwnNats>(with_tls("good"));
    NatsServer server = nats_->server();
    server.tls = true;
    stream_ = std::make_unique<NatsStream>(server);
    gate_ = std::make_unique<TcpGate>(server.port);
  }
  [[nodiscard]] std::unique_ptr<Sink> make(NatsGiven given = {}) const {
    NatsGiven settings = make_settings(*nats_, gate_->port());
    settings["tls_ca"] = folder_.file("good.pem");
    settings["stream"] = stream_->name();
    return make_nats_sink(std::move(given), settings);
  }

  std::unique_ptr<OwnNats> nats_;
  std::unique_ptr<NatsStream> stream_;
  std::unique_ptr<TcpGate> gate_;
};

TEST_F(NatsTlsGate, everything_arrives_over_broken_connections) {
  Load load(stream_->subject());
  load.add_many(3000, 300);
  const auto sink = make();
  MiniRelay relay(*sink, load);
  gate_->cut_after(20'000);
  while (gate_->cuts() < 20 && relay.acked() < load.size()) {
    ASSERT_TRUE(eventually([&] { return sink->open().has_value(); }));
    relay.rewind();
    relay.offer_all();
    ASSERT_TRUE(relay.drain());
  }
  EXPECT_GT(gate_->cuts(), 0);
  gate_->cut_after(0);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  const auto arrived = places(stream_->arrived(), load);
  expect_complete_and_ordered(arrived, load);
  EXPECT_EQ(arrived.size(), load.size()) << "none twice";
}

TEST_F(NatsTlsGate, sending_and_purging_do_not_wait_for_a_server_that_stops_reading) {
  Load load(stream_->subject());
  for (int i = 0; i < 200; ++i)
    load.add(fmt::format("k{}", i), std::string(200'000, 'x'), "text/plain");
  const auto sink = make({{"deadline", "10min"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  gate_->set(TcpGate::Mode::stalled);
  const auto from = Clock::now();
  relay.offer_all();
  EXPECT_EQ(relay.in_flight(), load.size());
  sink->purge();
  relay.receive();
  EXPECT_LT(Clock::now() - from, seconds(20)) << "not the deadline";
  EXPECT_EQ(relay.in_flight(), 0U);
  gate_->set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(stream_->arrived(), load), load);
}

}  // namespace
}  // namespace outbox::test
