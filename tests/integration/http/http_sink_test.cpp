// Tests what receivers do, and what becomes of the events.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "integration/http/fixture.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using Kind = Outcome::Kind;

constexpr const char* kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr const char* kOther = "whsec_c2VjcmV0LW9mLXNvbWVib2R5LWVsc2UtMzI=";

class HttpSink : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Sink> make(const std::string& path,
                                           SinkSettings settings = {}) const {
    return make_http_sink(server_.origin() + path, std::move(settings));
  }
  /// The outcome of one message that is sent to this path.
  [[nodiscard]] Outcome outcome(const std::string& path, const SinkSettings& settings = {}) {
    Load load;
    load.add_many(1, 1);
    return Sending(make(path, settings), load).outcome();
  }

  HttpServer server_;
};

// ---- answers

TEST_F(HttpSink, the_status_decides) {
  for (const auto& [status, kind] : std::map<int, Kind>{{200, Kind::acked},
                                                        {202, Kind::acked},
                                                        {204, Kind::acked},
                                                        {400, Kind::rejected},
                                                        {401, Kind::blocked},
                                                        {404, Kind::blocked},
                                                        {410, Kind::blocked},
                                                        {413, Kind::rejected},
                                                        {422, Kind::rejected},
                                                        {429, Kind::blocked},
                                                        {500, Kind::unknown},
                                                        {503, Kind::retry}}) {
    const Outcome got = outcome(fmt::format("/status/{}", status));
    EXPECT_EQ(got.kind, kind) << status << ": " << got.error.text();
  }
}

TEST_F(HttpSink, a_pause_may_be_given_in_seconds_or_as_a_date) {
  EXPECT_EQ(outcome("/status/429?retry_after=7").retry_after, std::chrono::seconds(7));
  const auto then = std::chrono::system_clock::now() + std::chrono::minutes(10);
  const std::string date = fmt::format("{:%a,+%d+%b+%Y+%H:%M:%S+GMT}",
                                       fmt::gmtime(std::chrono::system_clock::to_time_t(then)));
  const auto pause = outcome("/status/503?retry_after=" + date).retry_after;
  ASSERT_TRUE(pause.has_value());
  // The second of libcurl may begin a little later than that of the test.
  EXPECT_LE(*pause, std::chrono::minutes(10) + std::chrono::seconds(1));
  EXPECT_GT(*pause, std::chrono::minutes(8));
  EXPECT_EQ(outcome("/status/503?retry_after=soon").retry_after, std::nullopt);
}

TEST_F(HttpSink, a_redirect_is_not_followed) {
  const Outcome got = outcome("/redirect");
  EXPECT_EQ(got.kind, Kind::blocked);
  EXPECT_TRUE(contains(got.error.hint, "redirects are not followed"));
  EXPECT_EQ(server_.received().size(), 1U);
}

TEST_F(HttpSink, without_a_whole_answer_it_is_in_doubt) {
  for (const char* path : {"/hang", "/close", "/truncated", "/hang-after-head"}) {
    const Outcome got = outcome(path, {{"deadline", "1s"}, {"connect_timeout", "1s"}});
    EXPECT_EQ(got.kind, Kind::unknown) << path << ": " << got.error.text();
    EXPECT_EQ(got.error.effect, Effect::unknown) << path;
    EXPECT_TRUE(contains(got.error.message, server_.origin())) << got.error.text();
  }
}

TEST_F(HttpSink, a_connection_that_dies_with_a_request_and_cannot_be_made_again_is_in_doubt) {
  Load load;
  load.add_many(2, 1);
  Sending sending(make("/first-then-close"), load);
  EXPECT_EQ(sending.relay().acked(), 1U);
  sending.relay().offer_all();
  ASSERT_TRUE(sending.relay().drain());
  EXPECT_EQ(server_.received().size(), 2U) << "it got the second one, and did not answer";
  EXPECT_EQ(sending.outcome().kind, Kind::unknown) << sending.outcome().error.text();
}

TEST_F(HttpSink, of_a_long_answer_only_the_beginning_is_read) {
  EXPECT_EQ(outcome("/huge").kind, Kind::acked);
}

TEST_F(HttpSink, an_error_quotes_the_answer_but_no_secret) {
  const Outcome said = outcome("/status/422?body=no+such+tenant");
  EXPECT_TRUE(contains(said.error.message, "answered 422: \"no such tenant\""))
      << said.error.text();
  const SinkSettings bearer{{"authorization", "Bearer quite-secret"}, {"secrets", kSecret}};
  const SinkSettings basic{{"username", "me"}, {"password", "quite-secret"}};
  for (const SinkSettings& settings : {bearer, basic}) {
    for (const char* path : {"/echo", "/login"}) {
      const std::string text = outcome(path, settings).error.text();
      EXPECT_TRUE(contains(text, "answered 40")) << text;
      for (const char* secret :
           {"quite-secret", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "bWU6cXVpdGUtc2VjcmV0"})
        EXPECT_FALSE(contains(text, secret)) << text;
    }
  }
}

// ---- requests

TEST_F(HttpSink, a_message_is_a_request) {
  Load load;
  load.add("42", R"({ "total": 12.50 })").headers.push_back({.name = "X-Tenant", .value = "north"});
  load.add(std::nullopt, std::string("\0\xff", 2), "");
  ASSERT_EQ(Sending(make("/in/{aggregate_type}?id={aggregate_id}"), load).outcome().kind,
            Kind::acked);
  auto got = server_.received();
  ASSERT_EQ(got.size(), 2U);
  std::sort(got.begin(), got.end(), [](const Received& a, const Received& b) {
    return a.header("outbox-seq") < b.header("outbox-seq");
  });
  EXPECT_EQ(got[0].method, "POST");
  EXPECT_EQ(got[0].path, "/in/order?id=");
  EXPECT_EQ(got[0].body, R"({ "total": 12.50 })");
  EXPECT_EQ(got[0].header("x-tenant"), "north");
  EXPECT_EQ(got[0].header("content-type"), "application/json");
  EXPECT_EQ(got[0].header("outbox-key"), "42");
  EXPECT_EQ(got[0].header("outbox-id"), load.item(0).id_text);
  EXPECT_EQ(got[0].header("webhook-id"), load.item(0).id_text);
  EXPECT_EQ(got[0].header("user-agent"), "outbox");
  EXPECT_EQ(got[1].body, std::string("\0\xff", 2));
  for (const char* none : {"content-type", "outbox-key", "expect", "webhook-signature",
                           "authorization", "idempotency-key"})
    EXPECT_FALSE(got[1].headers.contains(none)) << none;
}

TEST_F(HttpSink, does_what_the_settings_say) {
  Load load;
  load.add_many(1, 1);
  ASSERT_EQ(Sending(make("/login", {{"method", "PUT"},
                                    {"authorization", "Bearer right"},
                                    {"idempotency_key", "true"}}),
                    load)
                .outcome()
                .kind,
            Kind::acked);
  ASSERT_EQ(
      Sending(make("/login", {{"username", "me"}, {"password", "right"}}), load).outcome().kind,
      Kind::acked);
  const auto got = server_.received();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].method, "PUT");
  EXPECT_EQ(got[0].header("idempotency-key"), load.item(0).id_text);
}

TEST_F(HttpSink, a_header_that_cannot_be_one_rejects_its_event_only) {
  Load load;
  load.add_many(3, 3);
  load.item(1).headers.push_back({.name = "Content-Length", .value = "0"});
  Sending sending(make("/"), load);
  EXPECT_EQ(sending.relay().rejected(), std::vector<std::size_t>{1});
  EXPECT_EQ(sending.relay().acked(), 2U);
  EXPECT_EQ(server_.received().size(), 2U);
}

TEST_F(HttpSink, an_event_without_an_address_is_rejected) {
  Load load;
  load.add_many(1, 1);
  const Outcome got = Sending(make("/{header:tenant}"), load).outcome();
  EXPECT_EQ(got.kind, Kind::rejected);
  EXPECT_TRUE(server_.received().empty());
}

// ---- signatures

TEST_F(HttpSink, is_signed_with_both_secrets) {
  Load load;
  load.add("42", R"({"total":12.5})");
  load.add("43", "");
  load.add("44", std::string("\0\xff\r\n", 4), "application/octet-stream");
  const std::string both = std::string(kSecret) + " " + kOther;
  Sending sending(make("/", {{"secrets", both}}), load);
  ASSERT_EQ(sending.relay().acked(), 3U);
  for (const Received& request : server_.received()) {
    const std::string signature = request.header("webhook-signature");
    EXPECT_EQ(std::count(signature.begin(), signature.end(), ' '), 1) << signature;
    EXPECT_TRUE(signature.starts_with("v1,")) << signature;
    EXPECT_EQ(request.header("webhook-id"), request.header("outbox-id"));
  }
}

/// The other implementation is the package that receivers in Python use.
TEST_F(HttpSink, its_signatures_verify_with_another_implementation) {
  const auto package = environment("OUTBOX_TEST_STANDARDWEBHOOKS");
  if (!package)
    GTEST_SKIP()
        << "needs the Python package standardwebhooks: OUTBOX_TEST_STANDARDWEBHOOKS is not set (scripts/test)";
  Load load;
  load.add("42", R"({"total":12.5})");
  load.add("43", R"("größe")", "application/json; charset=utf-8");
  load.add_many(5, 5);
  ASSERT_EQ(
      Sending(make("/", {{"secrets", std::string(kSecret) + "," + kOther}}), load).outcome().kind,
      Kind::acked);
  ASSERT_EQ(
      Sending(make("/", {{"secrets", std::string(kSecret) + "," + kOther}, {"batch", "10"}}), load)
          .outcome()
          .kind,
      Kind::acked);
  const TempDir folder;
  ChildProcess verify(
      ChildProcess::Options{.command = {"/usr/bin/env", "python3", OUTBOX_VERIFY_SIGNATURES,
                                        server_.record(), kSecret, kOther},
                            .environment = {{"PYTHONPATH", *package}},
                            .output = folder.file("log")});
  EXPECT_EQ(verify.wait(), 0);
  ChildProcess refuse(ChildProcess::Options{
      .command = {"/usr/bin/env", "python3", OUTBOX_VERIFY_SIGNATURES, server_.record(),
                  "whsec_d3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmc="},
      .environment = {{"PYTHONPATH", *package}},
      .output = folder.file("log")});
  EXPECT_NE(refuse.wait(), 0) << "it accepts any secret";
}

// ---- many at a time

TEST_F(HttpSink, sends_so_many_requests_at_a_time) {
  Load load;
  load.add_many(20, 20);
  const auto sink = make("/slow", {{"concurrency", "4"}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  EXPECT_EQ(relay.offer(20), 4U);
  EXPECT_EQ(relay.offer(20), 0U) << "full";
  ASSERT_TRUE(relay.drain());  // deliver() opens the sink first, which gives up what is in flight
  ASSERT_TRUE(relay.deliver());
  int most = 0;
  for (const Received& request : server_.received()) most = std::max(most, request.active);
  EXPECT_LE(most, 4);
}

TEST_F(HttpSink, uses_its_connections_again) {
  TcpGate gate(server_.port());
  Load load;
  load.add_many(200, 50);
  const auto sink =
      make_http_sink(fmt::format("http://127.0.0.1:{}/", gate.port()), {{"concurrency", "4"}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_LE(gate.connections(), 4 + 2) << "one for each request at a time, and two to open it";
}

TEST_F(HttpSink, a_connection_closed_while_idle_costs_nothing) {
  TcpGate gate(server_.port());
  Load load;
  load.add_many(20, 1);
  const auto sink = make_http_sink(fmt::format("http://127.0.0.1:{}/", gate.port()), {});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  while (relay.acked() < load.size()) {
    ASSERT_EQ(relay.offer(1), 1U);
    ASSERT_TRUE(relay.drain());
    gate.cut();
  }
  EXPECT_TRUE(relay.failures().empty());
}

// ---- batches

class HttpBatches : public HttpSink {
 protected:
  /// The bodies in all arrays that were accepted, in the order of arrival.
  [[nodiscard]] std::vector<std::string> bodies() const {
    std::vector<std::string> all;
    for (const Received& request : server_.received()) {
      if (request.status != 200) continue;
      for (const auto& one : nlohmann::json::parse(request.body)) all.push_back(one.dump());
    }
    return all;
  }
};

TEST_F(HttpBatches, many_events_are_one_request) {
  Load load;
  load.add_many(25, 25);
  Sending sending(make("/", {{"batch", "10"}, {"secrets", kSecret}}), load);
  EXPECT_EQ(sending.relay().acked(), 25U);
  const auto got = server_.received();
  EXPECT_EQ(got.size(), 3U);
  EXPECT_EQ(bodies().size(), 25U);
  std::set<std::string> ids;
  for (const Received& request : got) {
    ids.insert(request.header("webhook-id"));
    EXPECT_EQ(request.header("content-type"), "application/json");
    EXPECT_FALSE(request.headers.contains("outbox-id"));
    EXPECT_TRUE(request.headers.contains("webhook-signature"));
  }
  EXPECT_EQ(ids.size(), 3U);
}

TEST_F(HttpBatches, one_that_is_at_fault_is_found_among_the_others) {
  Load load;
  load.add_many(64, 64);
  load.item(37).body = R"({"bad":true})";
  Sending sending(make("/picky", {{"batch", "64"}, {"concurrency", "4"}}), load);
  EXPECT_EQ(sending.relay().rejected(), std::vector<std::size_t>{37});
  EXPECT_EQ(sending.relay().acked(), 63U);
  const auto got = bodies();
  EXPECT_EQ(std::set<std::string>(got.begin(), got.end()).size(), 63U);
  EXPECT_EQ(got.size(), 63U) << "an event was accepted twice";
  EXPECT_EQ(server_.received().size(), 13U) << "halves of halves: 1 + 2 * 6";
}

TEST_F(HttpBatches, a_batch_that_is_too_large_goes_in_parts) {
  Load load;
  for (int i = 0; i < 8; ++i) load.add(std::to_string(i), fmt::format("\"{:060}\"", i));
  Sending sending(make("/small", {{"batch", "8"}}), load);
  EXPECT_EQ(sending.relay().acked(), 8U);
  EXPECT_EQ(bodies().size(), 8U);
}

TEST_F(HttpBatches, every_event_of_one_has_the_same_outcome) {
  Load load;
  load.add_many(10, 10);
  Sending sending(make("/status/503?retry_after=3", {{"batch", "10"}}), load);
  ASSERT_EQ(sending.relay().failures().size(), 10U);
  for (const auto& failure : sending.relay().failures()) {
    EXPECT_EQ(failure.outcome.kind, Kind::retry);
    EXPECT_EQ(failure.outcome.retry_after, std::chrono::seconds(3));
  }
}

TEST_F(HttpBatches, a_purge_gives_the_parts_of_one_their_outcomes) {
  Load load;
  load.add_many(64, 64);
  load.item(0).body = R"({"bad":true})";
  const auto sink = make("/picky", {{"batch", "64"}, {"concurrency", "1"}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  relay.offer_all();
  ASSERT_EQ(relay.in_flight(), 64U);
  // The first half is under way, and the second one waits.
  ASSERT_TRUE(eventually([&] {
    relay.receive();
    return server_.received().size() > 1;
  }));
  sink->purge();
  relay.receive();
  EXPECT_EQ(relay.in_flight(), 0U);
  sink->close();
}

TEST_F(HttpBatches, cloudevents_have_their_own_type) {
  Load load;
  load.add_many(2, 2);
  for (std::size_t i = 0; i < 2; ++i)
    load.item(i).content_type = "application/cloudevents+json; charset=utf-8";
  ASSERT_EQ(Sending(make("/", {{"batch", "10"}}), load).outcome().kind, Kind::acked);
  ASSERT_EQ(server_.received().size(), 1U);
  EXPECT_EQ(server_.received()[0].header("content-type"),
            "application/cloudevents-batch+json; charset=utf-8");
}

}  // namespace
}  // namespace outbox::test
