#include "sink/sqs/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sink/sqs/credentials.hpp"
#include "sink/sqs/names.hpp"
#include "sink/sqs/sqs_sink.hpp"
#include "sink/template_example.hpp"

namespace outbox::sink::sqs {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Scheme, 2> kQueueSchemes{{{"https", 443}, {"http", 80}}};
constexpr std::array<Scheme, 3> kProxies{{{"http", 3128}, {"https", 443}, {"socks5h", 1080}}};
constexpr const char* kUrlShape =
    "such as https://sqs.eu-central-1.amazonaws.com/123456789012/orders";
constexpr const char* kQueueShape = "such as orders, {aggregate_type|kebab} or orders.fifo";
/// The number of all attributes without the id, the encoding and the rest.
constexpr std::size_t kMostFirst = kMostAttributes - 3;
constexpr std::size_t kAccountDigits = 12;
/// libcurl takes no longer regions.
constexpr std::size_t kMostRegionChars = 64;

SettingRows<SqsSettings> message_rows() {
  constexpr std::uint64_t kKiB = 1024;
  return {
      {"encoding", &SqsSettings::encoding, Traits{.choices = {"text", "base64", "auto"}},
       "text: bodies as they are, what SQS cannot send is rejected. base64: all in base64. auto: "
       "base64 where text cannot be sent. The attribute outbox-encoding says what a body is."},
      {"attributes", &SqsSettings::attributes,
       "Headers that become attributes of their own first, when there are more than the ten that SQS takes."},
      {"delay_seconds", &SqsSettings::delay_seconds, Traits{.range = {0, 900}},
       "So long the queue hides each message. Not with FIFO queues."},
      {"max_batch_bytes", &SqsSettings::max_batch_bytes,
       Traits{.type = SettingType::size, .range = {kKiB, kKiB * kKiB}},
       "Most bytes in a request, and so in a message, with attributes. SQS takes up to 1MiB where the queue's "
       "MaximumMessageSize allows it."},
  };
}

SettingRows<SqsSettings> rows() {
  using S = SqsSettings;
  return joined<S>({
      {{"url", &S::url, "The queue's URL: https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE."},
       {"queue", &S::queue,
        "Instead: the queue's name, which may have fields: {aggregate_type|kebab}. Its URL is looked up."},
       {"region", &S::region, "The region, such as eu-central-1. Default: the one in url."},
       {"account", &S::account, "The account that owns the queue, if it is another one."},
       {"endpoint", &S::endpoint, "Where SQS is: https://HOST:PORT. Default: AWS in the region."},
       {"access_key", &S::access_key,
        "The access key's id. Default: from the environment, the container or the instance."},
       {"secret_key", &S::secret_key, Traits{.secret = true}, "Goes with access_key."},
       {"session_token", &S::session_token, Traits{.secret = true}, "Of a temporary access_key."}},
      message_rows(),
      {{"concurrency", &S::concurrency, Traits{.range = {1, 1000}},
        "Requests at a time, each with up to 10 events."},
       {"deadline", &S::deadline, Traits{.range = {1s, 10min}},
        "Without an answer for so long a request counts as lost, and is sent again."},
       {"connect_timeout", &S::connect_timeout, Traits{.range = {100ms, 1min}},
        "For resolving the name, connecting and TLS."},
       {"proxy", &S::proxy, Traits{.secret = true},
        "A proxy: http://, https:// or socks5h://USER:PASSWORD@HOST:PORT."}},
      tls_rows<S>(),
  });
}

// ---- checks

/// The only address in the text, without user and password; nullopt after adding an error.
std::optional<Endpoint> one_address(const std::string& field, const std::string& text,
                                    FieldErrors& errors) {
  auto addresses = parse_endpoints(field, text, kQueueSchemes, errors);
  if (addresses.size() > 1) errors.add({field, "names several addresses", "name one"});
  if (addresses.size() != 1) return std::nullopt;
  if (!addresses[0].username.empty() || !addresses[0].password.empty()) {
    errors.add(
        {field, "has a user or a password", "set sqs.access_key and sqs.secret_key instead"});
    return std::nullopt;
  }
  return std::move(addresses[0]);
}

void check_key(const char* field, const std::string& text, FieldErrors& errors) {
  const bool fine =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (fine) return;
  errors.add({field, "has blanks, line breaks or characters other than ASCII",
              "a file that is referred to must not have more than the key"});
}

void check_login(const SqsSettings& s, FieldErrors& errors) {
  check_key("sqs.access_key", s.access_key, errors);
  check_key("sqs.secret_key", s.secret_key, errors);
  check_key("sqs.session_token", s.session_token, errors);
  if (s.access_key.empty() != s.secret_key.empty()) {
    const bool no_id = s.access_key.empty();
    errors.add({no_id ? "sqs.access_key" : "sqs.secret_key", "is missing",
                no_id ? "sqs.secret_key is set" : "sqs.access_key is set"});
  }
  if (!s.session_token.empty() && s.access_key.empty())
    errors.add({"sqs.session_token", "is set without sqs.access_key",
                "it goes with a temporary access key"});
}

void check_attributes(const SqsSettings& s, FieldErrors& errors) {
  if (s.attributes.size() > kMostFirst) {
    errors.add({"sqs.attributes", fmt::format("has more than {} names", kMostFirst),
                "a message has at most 10 attributes, and three may be needed for other things"});
  }
  for (const std::string& name : s.attributes) {
    if (const std::string_view wrong = wrong_attribute_name(name); !wrong.empty())
      errors.add({"sqs.attributes", fmt::format("{} {}", in_quotes(name), wrong),
                  "such headers go into the attribute outbox-headers"});
  }
}

void check_account(const SqsSettings& s, FieldErrors& errors) {
  if (s.account.empty()) return;
  if (s.queue.empty())
    errors.add({"sqs.account", "is set without sqs.queue", "a URL has the account"});
  if (s.account.size() != kAccountDigits ||
      !std::all_of(s.account.begin(), s.account.end(), is_digit))
    errors.add({"sqs.account", "is not the id of an account", "it has 12 digits"});
}

/// The host of the URL has the region, its path the queue.
std::optional<Endpoint> read_url(SqsOptions& options, FieldErrors& errors) {
  auto address = one_address("sqs.url", options.plain.url, errors);
  if (!address) return std::nullopt;
  const std::string name = address->path.substr(address->path.rfind('/') + 1);
  if (const std::string_view wrong = wrong_queue_name(name); !wrong.empty())
    errors.add({"sqs.url", fmt::format("the queue's name at its end {}", wrong), kUrlShape});
  options.fixed_queue = options.plain.url;
  if (options.region.empty()) options.region = parse_region(address->host);
  address->path.clear();
  return address;
}

void read_queue(SqsOptions& options, FieldErrors& errors) {
  auto queue = format::Template::compile("sqs.queue", options.plain.queue);
  if (!queue) return errors.add(queue.error());
  const std::string example = with_fields_as_x(options.plain.queue);
  if (const std::string_view wrong = wrong_queue_name(example); !wrong.empty())
    errors.add({"sqs.queue", fmt::format("is not the name of a queue: it {}", wrong), kQueueShape});
  options.fixed_queue = queue->fixed();
  options.queue = std::move(*queue);
}

void check_region(const std::string& region, FieldErrors& errors) {
  if (region.empty())
    return errors.add(
        {"sqs.region", "is missing", "such as eu-central-1, or \"${env:AWS_REGION}\""});
  const bool fine = region.size() <= kMostRegionChars &&
                    std::all_of(region.begin(), region.end(),
                                [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
  if (!fine) errors.add({"sqs.region", "is not the name of a region", "such as eu-central-1"});
}

Endpoint aws_in(const std::string& region) {
  const char* const domain = region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  return {.scheme = "https",
          .username = {},
          .password = {},
          .host = fmt::format("sqs.{}.{}", region, domain),
          .port = 443,
          .path = {}};
}

void read_destination(SqsOptions& options, FieldErrors& errors) {
  const SqsSettings& plain = options.plain;
  options.region = plain.region;
  if (plain.url.empty() == plain.queue.empty()) {
    errors.add({"sqs.queue", plain.url.empty() ? "is missing" : "is set beside sqs.url",
                "set one of them: the name with its region, or the URL"});
    return;
  }
  std::optional<Endpoint> endpoint;
  if (plain.url.empty()) {
    read_queue(options, errors);
  } else {
    endpoint = read_url(options, errors);
  }
  check_region(options.region, errors);
  if (!plain.endpoint.empty()) {
    endpoint = one_address("sqs.endpoint", plain.endpoint, errors);
    if (endpoint && !endpoint->path.empty())
      errors.add(
          {"sqs.endpoint", "has a path", "write https://HOST:PORT; url and queue have the queue"});
  }
  options.endpoint = endpoint ? std::move(*endpoint) : aws_in(options.region);
  if (plain.delay_seconds > 0 && options.fixed_queue && is_fifo(*options.fixed_queue)) {
    errors.add({"sqs.delay_seconds", "cannot be used with a FIFO queue",
                "set DelaySeconds of the queue instead"});
  }
}

void check(const SqsSettings& settings, FieldErrors& errors) {
  (void)read_options(settings, "", errors);
}

Result<std::unique_ptr<NetworkSink>> make(SqsSettings settings, const SubscriptionSpec& spec) {
  OUTBOX_TRY(auto options, read_valid(read_options, std::move(settings), spec.name));
  return std::make_unique<SqsSink>(std::move(*options), process_environment);
}

}  // namespace

std::string parse_region(std::string_view host) {
  for (std::size_t at = 0; at < host.size();) {
    const std::size_t end = std::min(host.find('.', at), host.size());
    const std::string_view label = host.substr(at, end - at);
    at = end + 1;
    if (label != "sqs" && label != "sqs-fips") continue;
    const std::size_t dot = host.find('.', std::min(at, host.size()));
    return dot == std::string_view::npos ? std::string() : std::string(host.substr(at, dot - at));
  }
  return {};
}

std::optional<SqsOptions> read_options(SqsSettings settings, const std::string& subscription,
                                       FieldErrors& errors) {
  SqsOptions options;
  options.plain = std::move(settings);
  options.subscription = subscription;
  const SqsSettings& plain = options.plain;
  read_destination(options, errors);
  check_login(plain, errors);
  check_account(plain, errors);
  check_attributes(plain, errors);
  check_tls("sqs", plain.tls, errors);
  if (plain.connect_timeout > plain.deadline)
    errors.add({"sqs.connect_timeout", "is longer than sqs.deadline"});
  if (parse_endpoints("sqs.proxy", plain.proxy, kProxies, errors).size() > 1)
    errors.add({"sqs.proxy", "names several proxies", "name one"});
  if (!errors.empty()) return std::nullopt;
  return options;
}

SinkKind kind() {
  return make_kind<SqsSettings>(
      {.name = "sqs",
       .help = "sends events to queues of Amazon SQS, standard or FIFO, in batches",
       .rows = rows(),
       .check = check,
       .make_network = make});
}

}  // namespace outbox::sink::sqs
