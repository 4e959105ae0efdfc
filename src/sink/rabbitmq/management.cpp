#include "sink/rabbitmq/management.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "sink/curl/handles.hpp"

namespace outbox::sink::rabbitmq {
namespace {

using curl::set;
using std::chrono::milliseconds;

constexpr std::size_t kLongestAnswer = std::size_t{4} << 20U;

std::size_t take(char* bytes, std::size_t size, std::size_t count, void* answer) {
  std::string& text = *static_cast<std::string*>(answer);
  if (text.size() + size * count > kLongestAnswer) return 0;
  text.append(bytes, size * count);
  return size * count;
}

Error failed(const RabbitOptions& options, std::string_view what, std::string hint) {
  return fail(Errc::unavailable, fmt::format("rabbitmq: {}: {}", options.management->shown(), what),
              std::move(hint))
      .value();
}

std::string make_url(const RabbitOptions& options) {
  const std::string& path = options.endpoints.front().path;
  const std::string_view virtual_host = path.empty() ? "/" : std::string_view(path);
  return fmt::format("{}/api/queues/{}/{}", options.management->shown(),
                     percent_encoded(virtual_host, kUnreserved),
                     percent_encoded(options.topology.queue, kUnreserved));
}

void set_up(CURL* easy, const RabbitOptions& options, milliseconds limit) {
  set(easy, CURLOPT_URL, make_url(options).c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_PROXY, "");
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max(limit, milliseconds(1)).count()));
  const Endpoint& server = options.endpoints.front();
  const Login login = make_login(options, server);
  set(easy, CURLOPT_USERNAME, login.username.c_str());
  set(easy, CURLOPT_PASSWORD, login.password.c_str());
  set(easy, CURLOPT_SSL_VERIFYPEER, options.plain.tls.insecure ? 0L : 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, options.plain.tls.insecure ? 0L : 2L);
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.plain.tls.ca.empty()) set(easy, CURLOPT_CAINFO, options.plain.tls.ca.c_str());
}

}  // namespace

Result<std::string> ask_about_queue(const RabbitOptions& options,
                                    std::chrono::steady_clock::time_point until) {
  const curl::Easy easy = curl::new_easy();
  const auto left =
      std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
  set_up(easy.get(), options, left);
  std::string answer;
  set(easy.get(), CURLOPT_WRITEFUNCTION, &take);
  set(easy.get(), CURLOPT_WRITEDATA, &answer);
  const CURLcode code = curl_easy_perform(easy.get());
  if (code != CURLE_OK)
    return fail(failed(options, curl_easy_strerror(code), "check rabbitmq.management_url"));
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return answer;
  return fail(
      failed(options, fmt::format("HTTP {}", status),
             status == 401 || status == 403
                 ? "give the sink's user the tag monitoring (rabbitmqctl set_user_tags)"
                 : "check rabbitmq.management_url, and that the plugin rabbitmq_management runs"));
}

namespace {

using Json = nlohmann::json;

constexpr std::size_t kEnoughMembers = 3;

/// The member, or null. RabbitMQ may write an empty object as a list.
Json member(const Json& object, const std::string& name) {
  return object.is_object() && object.contains(name) ? object.at(name) : Json();
}

std::string text_at(const Json& object, const std::string& name) {
  const Json value = member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

class Queue {
 public:
  explicit Queue(const Json& reply) : reply_(reply) {
    look_at_durability();
    // Streams are logs, which have limits by nature.
    if (type_ != "stream") look_at_limits();
  }
  [[nodiscard]] std::vector<Weakness> take() { return std::move(found_); }

 private:
  void add(std::string property, std::string meaning) {
    found_.push_back({std::move(property), std::move(meaning)});
  }

  void look_at_durability() {
    if (member(reply_, "durable") == false)
      add("durable = false", "it is lost with its events when the server restarts");
    if (member(reply_, "auto_delete") == true)
      add("auto_delete = true", "it is removed with its events when its last consumer leaves");
    if (member(reply_, "exclusive") == true)
      add("exclusive = true", "it is removed with its events when a connection is closed");
    if (type_ == "classic")
      add("type = classic", "its events are lost with the disk of one server; use type quorum");
    const Json members = member(reply_, "members");
    if (members.is_array() && members.size() < kEnoughMembers)
      add(fmt::format("members = {}", members.size()),
          "fewer than 3 servers have its events: one that fails makes it unavailable");
  }

  void look_at_limits() {
    const Json overflow = in_force("overflow");
    const bool refuses =
        overflow.is_string() && overflow.get<std::string>().starts_with("reject-publish");
    for (const char* limit : {"max-length", "max-length-bytes"}) {
      const Json value = in_force(limit);
      if (!value.is_null() && !refuses)
        add(fmt::format("{} = {}", limit, write_json(value)),
            "when it is full it drops its oldest events, read or not; use overflow = reject-publish");
    }
    for (const char* limit : {"message-ttl", "expires"}) {
      const Json value = in_force(limit);
      if (!value.is_null())
        add(fmt::format("{} = {}", limit, write_json(value)),
            "its events are removed after this time (in ms), read or not");
    }
  }

  /// The value that an argument or else a policy sets.
  [[nodiscard]] Json in_force(const std::string& name) const {
    const Json argument = member(member(reply_, "arguments"), "x-" + name);
    return argument.is_null() ? member(member(reply_, "effective_policy_definition"), name)
                              : argument;
  }

  const Json& reply_;
  const std::string type_{text_at(reply_, "type")};
  std::vector<Weakness> found_;
};

}  // namespace

Result<std::vector<Weakness>> check_queue(std::string_view reply) {
  const Json json = try_parse_json<Json>(reply);
  if (!json.is_object() || !json.contains("durable"))
    return fail(Errc::unavailable, "rabbitmq: the answer is not about a queue",
                "check rabbitmq.management_url");
  return Queue(json).take();
}

}  // namespace outbox::sink::rabbitmq
