#include "sink/http/config.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/base64.hpp"
#include "sink/endpoint.hpp"
#include "sink/http/http_sink.hpp"
#include "sink/http/request.hpp"

namespace outbox::sink::http {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Scheme, 3> kProxies{{{"http", 3128}, {"https", 443}, {"socks5h", 1080}}};

SettingRows<HttpSettings> rows() {
  using S = HttpSettings;
  return joined<S>({
      {{"url", &S::url, Traits{.required = true},
        "The receiver's address: https://HOST/PATH. Path and query may have fields: {aggregate_type|kebab}."},
       {"method", &S::method, Traits{.choices = {"POST", "PUT"}}, "The method of the requests."},
       {"secrets", &S::secrets, Traits{.secret = true},
        "Secrets of Standard Webhooks (whsec_...), separated by blanks or commas: each request is signed with all of "
        "them."},
       {"authorization", &S::authorization, Traits{.secret = true},
        "The header Authorization: \"Bearer ${env:TOKEN}\"."},
       {"username", &S::username, "With a password, for Basic authentication."},
       {"password", &S::password, Traits{.secret = true}, "Goes with the username."},
       {"idempotency_key", &S::idempotency_key,
        "Sends the header Idempotency-Key too, with the same id as webhook-id."},
       {"body", &S::body,
        "What is sent; may have fields of the event. Default: the message's own body, which is the payload with format raw."},
       {"body_type", &S::body_type, Traits{.choices = {kJsonBody, kFormBody, kTextBody}},
        "What body is. In JSON and in a form the values of fields are escaped, so that they stay values."}},
      {{"batch", &S::batch, Traits{.range = {1, 1000}},
        "Most events in one request. More than 1: a JSON array, with the formats json and cloudevents-json."},
       {"concurrency", &S::concurrency, Traits{.range = {1, 1000}}, "Requests at a time."},
       {"deadline", &S::deadline, Traits{.range = {1s, 10min}},
        "Without an answer for so long a request counts as lost, and is sent again."},
       {"connect_timeout", &S::connect_timeout, Traits{.range = {100ms, 1min}},
        "For resolving the name, connecting and TLS."}},
      {{"allow_http", &S::allow_http, "Allows http:// without encryption."},
       {"allow_networks", &S::allow_networks,
        "Networks, such as 10.1.0.0/16, that it may connect to although they are not of the public internet."},
       {"proxy", &S::proxy, Traits{.secret = true},
        "A proxy: http://, https:// or socks5h://USER:PASSWORD@HOST:PORT. It decides what may be connected to."}},
      tls_rows<S>(),
  });
}

// ---- checks

void check_login(const HttpSettings& settings, FieldErrors& errors) {
  if (const auto fault = find_fault({.name = "authorization", .value = settings.authorization}, {}))
    errors.add({"http.authorization", "has a line break or another control character",
                "a file that is referred to must not end with one"});
  if (!settings.authorization.empty() && !settings.username.empty())
    errors.add({"http.authorization", "is set beside http.username", "both make the same header"});
  if (settings.username.empty() != settings.password.empty()) {
    const bool no_name = settings.username.empty();
    errors.add({no_name ? "http.username" : "http.password", "is missing",
                no_name ? "http.password is set" : "http.username is set"});
  }
  if (settings.username.find(':') != std::string::npos)
    errors.add({"http.username", "has a colon, which Basic authentication cannot express"});
}

std::vector<curl::Network> parse_networks(const HttpSettings& settings, FieldErrors& errors) {
  std::vector<curl::Network> networks;
  for (const std::string& text : settings.allow_networks) {
    const auto network = curl::Network::parse(trimmed(text));
    if (network) {
      networks.push_back(*network);
    } else {
      errors.add({"http.allow_networks", in_quotes(text) + " is not a network",
                  "such as 10.1.0.0/16, fd00:1::/32, or a single address"});
    }
  }
  return networks;
}

/// Includes each word of `authorization` alone, because a receiver may repeat a token by itself.
std::vector<std::string> list_secrets(const HttpSettings& settings) {
  std::vector<std::string> secrets{settings.authorization, settings.password};
  if (!settings.username.empty())
    secrets.push_back(event::base64_text(settings.username + ":" + settings.password));
  for (std::string& word : split_words(settings.authorization)) secrets.push_back(std::move(word));
  for (std::string& word : split_words(settings.secrets)) secrets.push_back(std::move(word));
  const auto known = [](const std::string& text) {
    return text.empty() || equal_ignoring_case(text, "Bearer") ||
           equal_ignoring_case(text, "Basic");
  };
  secrets.erase(std::remove_if(secrets.begin(), secrets.end(), known), secrets.end());
  return secrets;
}

void check(const HttpSettings& settings, FieldErrors& errors) {
  (void)read_options(settings, errors);
}

void check_use(const HttpSettings& settings, const SubscriptionSpec& spec, FieldErrors& errors) {
  if (settings.batch == 1) return;
  if (!settings.body.empty())
    errors.add({"http.body", "cannot be sent with http.batch: one request has many events",
                "remove it, or set batch = 1"});
  if (spec.format != "json" && spec.format != "cloudevents-json")
    errors.add({"http.batch", "needs a format whose messages are JSON",
                "format = \"json\" or \"cloudevents-json\", or batch = 1"});
  if (!spec.headers.empty())
    errors.add({"headers", "cannot be sent with http.batch: one request has many events",
                "remove them, or set batch = 1"});
}

Result<std::unique_ptr<NetworkSink>> make(HttpSettings settings, const SubscriptionSpec& /*spec*/) {
  OUTBOX_TRY(auto options, read_valid(read_options, std::move(settings)));
  return std::make_unique<HttpSink>(std::move(*options));
}

}  // namespace

std::optional<HttpOptions> read_options(HttpSettings settings, FieldErrors& errors) {
  auto target = Target::parse(settings.url, settings.allow_http, errors);
  std::optional<BodyTemplate> body;
  if (!settings.body.empty()) body = BodyTemplate::parse(settings.body, settings.body_type, errors);
  auto signer = Signer::parse(settings.secrets);
  if (!signer) errors.add("http.secrets", signer.error());
  auto networks = parse_networks(settings, errors);
  check_login(settings, errors);
  check_tls("http", settings.tls, errors);
  if (settings.connect_timeout > settings.deadline)
    errors.add({"http.connect_timeout", "is longer than http.deadline"});
  if (parse_endpoints("http.proxy", settings.proxy, kProxies, errors).size() > 1)
    errors.add({"http.proxy", "names several proxies", "name one"});
  if (!target || !errors.empty()) return std::nullopt;
  auto secrets = list_secrets(settings);
  return HttpOptions{.plain = std::move(settings),
                     .target = std::move(*target),
                     .body = std::move(body),
                     .guard = curl::Guard(std::move(networks)),
                     .signer = std::move(*signer),
                     .secrets = std::move(secrets)};
}

SinkKind kind() {
  return make_kind<HttpSettings>(
      {.name = "http",
       .help =
           "sends events to webhooks: a request for each event or for many, signed as Standard Webhooks",
       .rows = rows(),
       .check = check,
       .check_use = check_use,
       .make_network = make});
}

}  // namespace outbox::sink::http
