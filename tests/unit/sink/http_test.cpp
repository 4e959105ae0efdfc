// The parts of the HTTP sink that need no server: settings, URLs, header fields, signatures,
// batches, and what answers mean.
#include <gtest/gtest.h>

#include <map>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "sink/http/answer.hpp"
#include "sink/http/body.hpp"
#include "sink/http/request.hpp"
#include "sink/http/signature.hpp"
#include "sink/http/target.hpp"

namespace outbox::test {
namespace {

using namespace sink::http;  // NOLINT(google-build-using-namespace)
using Given = std::map<std::string, std::string>;
using Kind = Outcome::Kind;

constexpr const char* kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr const char* kOther = "whsec_c2VjcmV0LW9mLXNvbWVib2R5LWVsc2UtMzI=";

// ---- settings

SubscriptionSpec spec(Given settings) { return make_spec("http", std::move(settings)); }

/// Adds an address to the settings.
std::string complaint(Given settings) {
  settings.emplace("url", "https://hooks.example.com/");
  return find_complaint(spec(std::move(settings)));
}

TEST(HttpSettings, an_address_is_all_that_is_needed) {
  EXPECT_EQ(complaint(Given{}), "");
  EXPECT_TRUE(contains(find_complaint(spec({})), "http.url: is missing"));
}

TEST(HttpSettings, every_setting_is_checked) {
  for (const auto& [name, value] : Given{{"method", "PUT"},
                                         {"secrets", std::string(kSecret) + ", " + kOther},
                                         {"authorization", "Bearer abc"},
                                         {"batch", "1"},
                                         {"concurrency", "64"},
                                         {"deadline", "1min"},
                                         {"connect_timeout", "500ms"},
                                         {"allow_networks", "10.0.0.0/8, fd00::/8"},
                                         {"proxy", "http://me:hush@proxy:3128"},
                                         {"tls_ca", "/etc/ca.pem"}})
    EXPECT_EQ(complaint({{name, value}}), "") << name;
  for (const auto& [name, value] : std::multimap<std::string, std::string>{
           {"method", "GET"},
           {"secrets", "hush"},
           {"authorization", "Bearer hush\r\nx: y"},
           {"username", "me"},
           {"password", "hush"},
           {"batch", "0"},
           {"concurrency", "0"},
           {"deadline", "10"},
           {"connect_timeout", "30s"},  // The limit is longer than the deadline.
           {"allow_networks", "10.0.0.1/8"},
           {"allow_networks", "localhost"},
           {"proxy", "ftp://hush@proxy"},
           {"proxy", "http://hush@a:1,http://b:2"},
           {"tls_key", "/etc/key.pem"},
           {"tls_certificate", "/etc/certificate.pem"},
           {"retries", "7"}}) {
    const std::string text = complaint({{name, value}});
    EXPECT_TRUE(contains(text, "http.")) << name << "=" << value << ": " << text;
    EXPECT_FALSE(contains(text, "hush")) << text;
  }
  EXPECT_TRUE(contains(complaint({{"username", "me:you"}, {"password", "p"}}), "colon"));
  EXPECT_TRUE(contains(
      complaint({{"username", "me"}, {"password", "p"}, {"authorization", "Bearer x"}}), "beside"));
}

TEST(HttpSettings, a_batch_needs_json_and_has_no_headers_of_single_events) {
  SubscriptionSpec batches = spec({{"url", "https://h/"}, {"batch", "10"}});
  EXPECT_TRUE(contains(find_complaint(batches), "http.batch: needs a format"));
  batches.format = "cloudevents";
  EXPECT_TRUE(contains(find_complaint(batches), "http.batch: needs a format"));
  for (const char* format : {"json", "cloudevents-json"}) {
    batches.format = format;
    EXPECT_EQ(find_complaint(batches), "") << format;
  }
  batches.headers["x-shop"] = "north";
  EXPECT_TRUE(contains(find_complaint(batches), "headers: cannot be sent"));
}

// ---- the URL

std::string url_complaint(const std::string& url) { return complaint(Given{{"url", url}}); }

TEST(HttpTarget, is_encrypted_unless_allowed) {
  EXPECT_TRUE(contains(url_complaint("http://hooks.example.com/"), "http.allow_http = true"));
  EXPECT_EQ(complaint({{"url", "http://hooks.example.com/"}, {"allow_http", "true"}}), "");
}

TEST(HttpTarget, refuses_what_is_no_address_and_never_quotes_it) {
  for (const char* url :
       {"hush.example.com", "ftp://hush/", "file:///hush", "https://", "https:///hush",
        "https://me:hush@h/", "https://hush@h/", "https://h/#hush", "https://h/a b-hush",
        "https://h/hush\n", "https://h/schl\xc3\xbcssel-hush", "https://h:99999/hush",
        "gopher://hush/"}) {
    const std::string text = url_complaint(url);
    EXPECT_TRUE(contains(text, "http.url: ")) << url << ": " << text;
    EXPECT_FALSE(contains(text, "hush")) << text;
    EXPECT_TRUE(contains(text, "hint: ")) << text;
  }
}

TEST(HttpTarget, an_event_decides_about_path_and_query_only) {
  for (const char* url : {"https://h/{aggregate_type}", "https://h/a/{header:x|default:none}/b",
                          "https://h/?type={event_type}", "https://h?{aggregate_id}"})
    EXPECT_EQ(url_complaint(url), "") << url;
  for (const char* url :
       {"https://{header:tenant}/", "https://{header:tenant}.example.com/x", "https://h:{seq}/",
        "https://h{aggregate_id}", "https:///{header:host}/", "https:/{header:host}/",
        "https:////{header:host}/x", "https:{header:host}", "https:\\\\{header:host}/",
        "{header:url}", "https://h{aggregate_type}/x", "{header:scheme}://h/"})
    EXPECT_TRUE(contains(url_complaint(url), "http.url: ")) << url;
  EXPECT_TRUE(contains(url_complaint("https://{header:tenant}/"), "a subscription for each host"));
  EXPECT_TRUE(contains(url_complaint("https://h/{agregate_type}"), "did you mean aggregate_type"));
  EXPECT_TRUE(contains(url_complaint("https://h/{seq"), "without"));
}

Target target(const std::string& url) {
  FieldErrors errors;
  auto parsed = Target::parse(url, true, errors);
  EXPECT_TRUE(parsed.has_value()) << errors.status().error().text();
  return std::move(*parsed);
}

/// The URL, or "!" and the message if the event is at fault.
std::string url_for(const std::string& url, const EventView& event) {
  event::Arena arena;
  const auto made = target(url).url_for(event, arena);
  return made ? *made : "!" + made.error().text();
}

TEST(HttpTarget, values_of_fields_cannot_leave_their_place) {
  EventView event;
  event.aggregate_type = "Order Line";
  event.aggregate_id = "a/b?c=d&e#f%41:\xc3\xbc.-_~";
  EXPECT_EQ(url_for("https://h/{aggregate_type|kebab}/in", event), "https://h/order-line/in");
  EXPECT_EQ(url_for("https://h/{aggregate_id}", event),
            "https://h/a%2Fb%3Fc%3Dd%26e%23f%2541%3A%C3%BC.-_~");
  EXPECT_EQ(url_for("https://h/?id={aggregate_id}&x={aggregate_type}", event),
            "https://h/?id=a%2Fb%3Fc%3Dd%26e%23f%2541%3A%C3%BC.-_~&x=Order%20Line");
  event.aggregate_id = "a\r\nHost: elsewhere";
  EXPECT_EQ(url_for("https://h/{aggregate_id}", event), "https://h/a%0D%0AHost%3A%20elsewhere");
}

TEST(HttpTarget, refuses_events_that_would_have_another_path) {
  EventView event;
  EXPECT_TRUE(
      contains(url_for("https://h/{header:tenant}/in", event), "!http: the event has no value"));
  EXPECT_EQ(url_for("https://h/in?tenant={header:tenant}", event), "https://h/in?tenant=");
  for (const char* dots : {".", ".."}) {
    event.aggregate_id = dots;
    EXPECT_TRUE(contains(url_for("https://h/a/{aggregate_id}/in", event), "!")) << dots;
    EXPECT_TRUE(contains(url_for("https://h/a/{aggregate_id}", event), "!")) << dots;
    EXPECT_TRUE(contains(url_for("https://h/a/{aggregate_id}?x=y", event), "!")) << dots;
    EXPECT_FALSE(contains(url_for("https://h/a?x={aggregate_id}", event), "!")) << dots;
  }
  event.aggregate_id = ".";
  EXPECT_TRUE(contains(url_for("https://h/.{aggregate_id}/in", event), "!"));
  event.aggregate_id = "...";
  EXPECT_FALSE(contains(url_for("https://h/{aggregate_id}/in", event), "!"));
  const std::string much(9000, 'x');
  event.aggregate_id = much;
  EXPECT_TRUE(contains(url_for("https://h/{aggregate_id}", event), "!"));
}

TEST(HttpTarget, shows_no_more_than_the_host) {
  EXPECT_EQ(target("https://Hooks.Example.com/secret?token=x").origin(),
            "https://Hooks.Example.com:443");
  EXPECT_EQ(target("http://[::1]:8080/x").origin(), "http://[::1]:8080");
  EXPECT_TRUE(target("https://127.0.0.1/").is_loopback());
  EXPECT_FALSE(target("https://h/").varies());
  EXPECT_TRUE(target("https://h/{seq}").varies());
  EXPECT_FALSE(target("https://h/{{seq}}").varies());
}

// ---- the body

/// The body, or "!" and the message if the event is at fault, or "?" if the template is wrong.
std::string body_for(const std::string& text, std::string_view type, const EventView& event) {
  FieldErrors errors;
  event::Arena arena;
  const auto body = BodyTemplate::parse(text, type, errors);
  if (!body) return "?" + errors.status().error().text();
  const auto made = body->render(event, arena);
  return made ? *made : "!" + made.error().text();
}

TEST(HttpBody, values_stay_values_in_json) {
  EventView event;
  event.aggregate_id = "a\"}, \\\n\xff";
  event.payload =
      R"({"n": 12.5, "t": "x", "o": {"a": [1]}, "z": null, "bad": "1, \"admin\": true"})";
  EXPECT_EQ(body_for(R"({{"id": "<{aggregate_id}>"}})", kJsonBody, event),
            "{\"id\": \"<a\\\"}, \\\\\\n\xef\xbf\xbd>\"}");
  EXPECT_EQ(body_for(R"([{json:n}, {json:o}, {json:z}, {json:none}, "{json:none}", "\"{json:t}"])",
                     kJsonBody, event),
            R"([12.5, {"a": [1]}, null, null, "", "\"x"])");
  EXPECT_EQ(body_for(R"("{json:o}")", kJsonBody, event), R"("{\"a\": [1]}")");
  for (const char* text : {R"({{"n": {json:t}}})", R"({{"n": {json:bad}}})"})
    EXPECT_TRUE(contains(body_for(text, kJsonBody, event), "!http: the event cannot be sent"))
        << text;
}

TEST(HttpBody, must_be_json_unless_it_is_something_else) {
  for (const char* text :
       {"{id}x", R"({{"a": })", R"({{"a": "{id}})", R"(["\{id}"])", "{nope}", R"({"a": 1})"})
    EXPECT_TRUE(contains(body_for(text, kJsonBody, {}), "?http.body: ")) << text;
  EventView event;
  event.aggregate_id = "a&b=\xc3\xbc +";
  EXPECT_EQ(body_for("id={aggregate_id}&x=1", kFormBody, event), "id=a%26b%3D%C3%BC%20%2B&x=1");
  EXPECT_EQ(body_for("<{aggregate_id}>", kTextBody, event), "<a&b=\xc3\xbc +>");
}

TEST(HttpBody, goes_with_one_event_in_a_request) {
  SubscriptionSpec batches = spec({{"url", "https://h/"}, {"batch", "10"}, {"body", "[{seq}]"}});
  batches.format = "json";
  EXPECT_TRUE(contains(find_complaint(batches), "http.body: cannot be sent with http.batch"));
  EXPECT_EQ(complaint({{"body", "[{seq}]"}}), "");
  EXPECT_TRUE(contains(complaint({{"body_type", "text/xml"}}), "http.body_type"));
}

// ---- header fields

TEST(HttpHeaders, what_can_be_a_field_is_sent) {
  for (const HeaderView& good :
       {HeaderView{.name = "x-tenant", .value = "a"},
        HeaderView{.name = "X!#$%&'*+.^_`|~1", .value = ""},
        HeaderView{.name = "kunde", .value = "J\xc3\xbcrgen\t\xff"},
        HeaderView{.name = "traceparent",
        .value = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
        HeaderView{.name = "authorization", .value = "Bearer x"}})
    EXPECT_EQ(find_fault(good, {}), std::nullopt) << good.name;
}

TEST(HttpHeaders, text_never_becomes_protocol) {
  constexpr std::string_view nul("a\0b", 3);
  for (const std::string_view value :
       {std::string_view("a\r\nb: c"), std::string_view("a\nb"), std::string_view("a\rb"), nul,
        std::string_view("a\x7f"), std::string_view("\x1b[2J")})
    EXPECT_NE(find_fault({.name = "x", .value = value}, {}), std::nullopt);
  for (const std::string_view name :
       {std::string_view(""), std::string_view("a b"), std::string_view("a:b"),
        std::string_view("a\r\nb"), std::string_view("sch\xc3\xb6n"), std::string_view(":path"),
        std::string_view("a\0b", 3)})
    EXPECT_NE(find_fault({.name = name, .value = "x"}, {}), std::nullopt);
}

TEST(HttpHeaders, no_message_sets_what_frames_or_signs_it) {
  for (const char* name : {"Host", "content-length", "Transfer-Encoding", "connection", "Upgrade",
                           "TE", "trailer", "keep-alive", "Proxy-Authorization", "expect",
                           "Webhook-Signature", "webhook-id", "webhook-timestamp"})
    EXPECT_NE(find_fault({.name = name, .value = "x"}, {}), std::nullopt) << name;
  EXPECT_NE(find_fault({.name = "Authorization", .value = "x"}, {.authorization = true}),
            std::nullopt);
  EXPECT_NE(find_fault({.name = "Idempotency-Key", .value = "x"}, {.idempotency_key = true}),
            std::nullopt);
}

TEST(HttpHeaders, lines_for_libcurl) {
  EXPECT_EQ(header_line("a", "b c"), "a: b c");
  EXPECT_EQ(header_line("a", "  b\t"), "a: b");
  EXPECT_EQ(header_line("a", ""), "a;") << "a: without a value removes a header";
  EXPECT_EQ(header_line("a", " "), "a;");
}

// ---- signatures

TEST(HttpSignature, is_the_one_that_the_specification_publishes) {
  const auto signer = Signer::parse(kSecret);
  ASSERT_TRUE(signer) << signer.error().text();
  EXPECT_EQ(signer->sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(HttpSignature, signs_with_every_secret) {
  const auto one = Signer::parse(kSecret).value().sign("a", 1, "b");
  const auto other = Signer::parse(kOther).value().sign("a", 1, "b");
  EXPECT_NE(one, other);
  for (const char* between : {" ", ",", ", ", "\n"})
    EXPECT_EQ(Signer::parse(std::string(kSecret) + between + kOther).value().sign("a", 1, "b"),
              one + " " + other);
  EXPECT_FALSE(Signer::parse(" ").value().signs());
}

TEST(HttpSignature, covers_every_byte) {
  const Signer signer = Signer::parse(kSecret).value();
  const std::string_view nul("a\0b", 3);
  EXPECT_NE(signer.sign("i", 1, nul), signer.sign("i", 1, "a"));
  EXPECT_NE(signer.sign("i", 1, "b"), signer.sign("j", 1, "b"));
  EXPECT_NE(signer.sign("i", 1, "b"), signer.sign("i", 2, "b"));
}

TEST(HttpSignature, refuses_secrets_that_are_none) {
  for (const char* bad : {"hush", "whsec_hush", "whsec_hush!",
                          "whsec_c2hvcnQ=", "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                          "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}) {
    const auto signer = Signer::parse(std::string(kSecret) + " " + bad);
    ASSERT_FALSE(signer) << bad;
    EXPECT_EQ(signer.error().message, "secret 2 is not one of Standard Webhooks");
    EXPECT_FALSE(contains(signer.error().text(), bad)) << signer.error().text();
  }
  EXPECT_FALSE(Signer::parse("whsec_" + std::string(88, 'A')).has_value()) << "66 bytes";
}

// ---- batches

std::vector<BatchedEvent> parts(std::initializer_list<const char*> bodies) {
  std::vector<BatchedEvent> all;
  for (const char* body : bodies)
    all.push_back({.token = all.size() + 1, .id = "id" + std::to_string(all.size()), .body = body});
  return all;
}

TEST(HttpBatch, is_an_array_in_order) {
  EXPECT_EQ(join_array(parts({"{}"})), "[{}]");
  EXPECT_EQ(join_array(parts({R"({"a":1})", "2", "\"x\""})), R"([{"a":1},2,"x"])");
}

TEST(HttpBatch, has_the_id_of_its_event_or_of_exactly_these) {
  const auto three = parts({"1", "2", "3"});
  EXPECT_EQ(request_id(std::span(three).first(1)), "id0");
  const std::string all = request_id(three);
  EXPECT_EQ(all, request_id(parts({"1", "2", "3"})));
  EXPECT_NE(all, request_id(std::span(three).first(2)));
  EXPECT_NE(all, request_id(std::span(three).last(2)));
  EXPECT_FALSE(contains(all, ".")) << "the specification forbids it";
}

TEST(HttpBatch, types) {
  EXPECT_EQ(array_type("application/json"), "application/json");
  EXPECT_EQ(array_type("application/cloudevents+json; charset=utf-8"),
            "application/cloudevents-batch+json; charset=utf-8");
  EXPECT_EQ(array_type("text/plain"), "");
  EXPECT_EQ(array_type(""), "");
}

class HttpComposer : public testing::Test {
 protected:
  Composer& composer(Given settings) {
    settings.emplace("url", "https://h/{aggregate_type}");
    FieldErrors errors;
    HttpSettings given;
    given.url = settings["url"];
    given.secrets = settings["secrets"];
    given.authorization = settings["authorization"];
    given.idempotency_key = settings["idempotency_key"] == "true";
    if (settings.contains("batch")) given.batch = std::stoul(settings["batch"]);
    options_ = read_options(given, errors);
    EXPECT_TRUE(options_.has_value()) << errors.status().error().text();
    return composer_.emplace(*options_);
  }
  std::vector<Message> messages() {
    std::vector<Message> all;
    for (std::size_t place = 0; place < load_.size(); ++place)
      all.push_back(load_.message(place, place + 1));
    return all;
  }

  Load load_{"order.events"};
  std::optional<HttpOptions> options_;
  std::optional<Composer> composer_;
};

TEST_F(HttpComposer, one_event_has_its_headers_key_and_type) {
  load_.add("42", R"({"a":1})");
  load_.item(0).headers.push_back({.name = "x-tenant", .value = "a"});
  const auto request = composer({{"authorization", "Bearer x"}}).compose(messages());
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(request->url, "https://h/order");
  EXPECT_EQ(request->headers,
            (std::vector<std::string>{"outbox-id: " + load_.item(0).id_text, "outbox-seq: 1",
                                      "content-type: application/json", "x-tenant: a",
                                      "outbox-key: 42", "authorization: Bearer x", "expect:"}));
  EXPECT_EQ(request->parts.size(), 1U);
  EXPECT_EQ(request->parts[0].body, R"({"a":1})");
}

TEST_F(HttpComposer, without_a_type_or_a_key_there_is_no_field) {
  load_.add(std::nullopt, "x", "");
  const auto request = composer({}).compose(messages());
  ASSERT_TRUE(request);
  EXPECT_EQ(request->headers[2], "content-type:") << "removes the one that libcurl would add";
  EXPECT_EQ(request->headers[3], "expect:");
}

TEST_F(HttpComposer, stamps_each_sending) {
  load_.add("42", "{}");
  auto& made = composer({{"secrets", kSecret}, {"idempotency_key", "true"}});
  const Request request = made.compose(messages()).value();
  const std::string id = load_.item(0).event.id.str();
  EXPECT_EQ(made.stamp(request, "{}", 77),
            (std::vector<std::string>{
                "webhook-id: " + id, "webhook-timestamp: 77",
                "webhook-signature: " + Signer::parse(kSecret).value().sign(id, 77, "{}"),
                "idempotency-key: " + id}));
}

TEST_F(HttpComposer, an_array_takes_what_goes_to_the_same_place) {
  for (int i = 0; i < 5; ++i) load_.add(std::to_string(i), std::to_string(i));
  load_.item(3).event.aggregate_type = "invoice";
  auto& made = composer({{"batch", "10"}});
  const auto all = messages();
  EXPECT_EQ(join_array(made.compose(all).value().parts), "[0,1,2]");
  EXPECT_EQ(join_array(made.compose(std::span(all).subspan(3)).value().parts), "[3]");
  EXPECT_EQ(join_array(composer({{"batch", "2"}}).compose(all).value().parts), "[0,1]");
}

TEST_F(HttpComposer, an_array_is_closed_before_it_is_too_large) {
  for (int i = 0; i < 5; ++i) load_.add(std::to_string(i), '"' + std::string(600'000, 'x') + '"');
  EXPECT_EQ(composer({{"batch", "10"}}).compose(messages()).value().parts.size(), 2U);
}

TEST_F(HttpComposer, halves_have_every_part_once) {
  for (int i = 0; i < 5; ++i) load_.add(std::to_string(i), std::to_string(i));
  const auto [first, second] = halves(composer({{"batch", "10"}}).compose(messages()).value());
  EXPECT_EQ(join_array(first.parts), "[0,1]");
  EXPECT_EQ(join_array(second.parts), "[2,3,4]");
  EXPECT_EQ(first.url, second.url);
  EXPECT_EQ(first.headers, second.headers);
  EXPECT_TRUE(second.is_array);
}

TEST_F(HttpComposer, an_event_that_cannot_be_expressed_is_refused) {
  load_.add("42", "{}");
  load_.item(0).headers.push_back({.name = "host", .value = "elsewhere"});
  const auto own = composer({}).compose(messages());
  ASSERT_FALSE(own);
  EXPECT_TRUE(contains(own.error().text(), "'host'")) << own.error().text();
  load_.item(0).headers.pop_back();
  load_.item(0).key = "a\r\nb";
  EXPECT_FALSE(composer({}).compose(messages()));
  load_.item(0).key = "42";
  load_.item(0).content_type = "text/plain";
  EXPECT_FALSE(composer({{"batch", "2"}}).compose(messages()));
}

// ---- answers

const std::vector<std::string> kSecrets{"hush", "c2VjcmV0"};

Outcome make_outcome(Answer answer, bool url_varies = false) {
  return judge(answer, {.origin = "https://h:443",
                        .url_varies = url_varies,
                        .deadline = std::chrono::seconds(20),
                        .secrets = &kSecrets});
}

Outcome answered(long status, bool url_varies = false) {
  return make_outcome({.status = status, .sent = true}, url_varies);
}

TEST(HttpAnswer, what_each_status_means) {
  const std::map<Kind, std::vector<long>> all{
      {Kind::acked, {200, 201, 202, 204, 206, 299}},
      {Kind::rejected, {400, 413, 415, 422, 406, 412, 414, 431, 499}},
      {Kind::blocked,
       {300, 301, 302, 303, 307, 308, 304, 401, 402, 403, 404, 405, 407, 410, 411, 426, 429, 501,
        505}},
      {Kind::retry, {408, 409, 421, 423, 425, 503}},
      {Kind::unknown, {500, 502, 504, 507, 520, 599, 999, 101}}};
  for (const auto& [kind, statuses] : all) {
    for (const long status : statuses) {
      const Outcome outcome = answered(status);
      EXPECT_EQ(outcome.kind, kind) << status << " is " << to_string(outcome.kind);
      if (kind == Kind::acked) continue;
      EXPECT_TRUE(contains(outcome.error.message, "https://h:443")) << outcome.error.text();
      EXPECT_TRUE(contains(outcome.error.message, std::to_string(status))) << outcome.error.text();
      EXPECT_FALSE(outcome.error.hint.empty()) << status;
      EXPECT_EQ(outcome.error.effect, kind == Kind::unknown ? Effect::unknown : Effect::none)
          << status;
    }
  }
}

TEST(HttpAnswer, an_address_that_depends_on_the_event_may_be_its_fault) {
  for (const long status : {404L, 410L})
    EXPECT_EQ(answered(status, true).kind, Kind::rejected) << status;
  for (const long status : {301L, 401L, 405L, 429L, 501L})
    EXPECT_EQ(answered(status, true).kind, Kind::blocked) << status;
}

TEST(HttpAnswer, a_pause_is_granted_within_limits) {
  const auto pause = [](long status, long seconds) {
    return make_outcome(
               {.status = status, .sent = true, .retry_after = std::chrono::seconds(seconds)})
        .retry_after;
  };
  EXPECT_EQ(pause(429, 120), std::chrono::seconds(120));
  EXPECT_EQ(pause(503, 5), std::chrono::seconds(5));
  EXPECT_EQ(pause(503, 1'000'000), std::chrono::hours(1));
  EXPECT_EQ(pause(503, 0), std::nullopt);
  EXPECT_EQ(pause(503, -5), std::nullopt) << "a date that has passed";
  EXPECT_EQ(pause(400, 5), std::nullopt);
}

TEST(HttpAnswer, only_a_whole_answer_counts_as_success) {
  EXPECT_EQ(make_outcome({.code = CURLE_PARTIAL_FILE, .status = 200, .sent = true}).kind,
            Kind::unknown);
  EXPECT_EQ(make_outcome({.code = CURLE_OPERATION_TIMEDOUT, .status = 202, .sent = true}).kind,
            Kind::unknown);
  EXPECT_EQ(
      make_outcome({.code = CURLE_WRITE_ERROR, .status = 200, .sent = true, .longer = true}).kind,
      Kind::acked)
      << "only the rest was not read";
  EXPECT_EQ(make_outcome({.code = CURLE_PARTIAL_FILE, .status = 422, .sent = true}).kind,
            Kind::rejected);
}

TEST(HttpAnswer, without_an_answer_it_matters_whether_anything_was_sent) {
  for (const CURLcode code :
       {CURLE_OPERATION_TIMEDOUT, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING,
        CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_COULDNT_CONNECT, CURLE_ABORTED_BY_CALLBACK})
    EXPECT_EQ(make_outcome({.code = code, .sent = true}).kind, Kind::unknown) << code;
  for (const CURLcode code :
       {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT,
        CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CERTPROBLEM})
    EXPECT_EQ(make_outcome({.code = code}).kind, Kind::blocked) << code;
  for (const CURLcode code : {CURLE_ABORTED_BY_CALLBACK, CURLE_SEND_ERROR, CURLE_OUT_OF_MEMORY})
    EXPECT_EQ(make_outcome({.code = code}).kind, Kind::retry) << code;
}

TEST(HttpAnswer, says_why) {
  const auto timed_out = make_outcome({.code = CURLE_OPERATION_TIMEDOUT, .sent = true}).error;
  EXPECT_EQ(timed_out.message, "http: https://h:443 did not answer within 20s");
  EXPECT_EQ(timed_out.origin, "curl:28");
  const auto refused =
      make_outcome({.code = CURLE_COULDNT_CONNECT, .refused = "10.0.0.7, a private network"});
  EXPECT_EQ(refused.kind, Kind::blocked);
  EXPECT_TRUE(contains(refused.error.message, "10.0.0.7, a private network"));
  EXPECT_TRUE(contains(refused.error.hint, "allow_networks"));
  const auto proxy = make_outcome({.code = CURLE_RECV_ERROR, .proxy_status = 407, .sent = true});
  EXPECT_EQ(proxy.kind, Kind::blocked);
  EXPECT_TRUE(contains(proxy.error.message, "the proxy answered 407"));
}

TEST(HttpAnswer, quotes_a_little_of_the_body_and_no_secret) {
  EXPECT_EQ(excerpt("  {\"error\":\n\t\"no such\x1b[2J tenant\"}\r\n", {}),
            "{\"error\": \"no such [2J tenant\"}");
  EXPECT_EQ(excerpt("wrong token hush, and hush!", kSecrets), "wrong token ***, and ***!");
  EXPECT_EQ(excerpt("f\xc3\xbcr \xff\xc2\x85 Sie", {}), "f\xc3\xbcr Sie");
  EXPECT_EQ(excerpt(std::string(300, 'x'), {}), std::string(200, 'x') + "...");
  EXPECT_EQ(excerpt(std::string(199, 'x') + "\xc3\xbc" + "yy", {}), std::string(199, 'x') + "...");
  EXPECT_EQ(excerpt("", {}), "");
  EXPECT_EQ(make_outcome({.status = 400, .sent = true, .body = "no hush"}).error.message,
            "http: https://h:443 answered 400: \"no ***\"");
}

}  // namespace
}  // namespace outbox::test
