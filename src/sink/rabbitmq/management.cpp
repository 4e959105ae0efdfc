#include "sink/rabbitmq/management.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.hpp"
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

std::string url_of(const RabbitOptions& options) {
  const std::string& path = options.endpoints.front().path;
  const std::string_view virtual_host = path.empty() ? "/" : std::string_view(path);
  return fmt::format("{}/api/queues/{}/{}", options.management->shown(),
                     percent_encoded(virtual_host, kUnreserved),
                     percent_encoded(options.topology.queue, kUnreserved));
}

void set_up(CURL* easy, const RabbitOptions& options, milliseconds limit) {
  set(easy, CURLOPT_URL, url_of(options).c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_PROXY, "");
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max(limit, milliseconds(1)).count()));
  const Endpoint& server = options.endpoints.front();
  const Login login = login_of(options, server);
  set(easy, CURLOPT_USERNAME, login.username.c_str());
  set(easy, CURLOPT_PASSWORD, login.password.c_str());
  set(easy, CURLOPT_SSL_VERIFYPEER, options.tls.insecure ? 0L : 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, options.tls.insecure ? 0L : 2L);
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.tls.ca.empty()) set(easy, CURLOPT_CAINFO, options.tls.ca.c_str());
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

}  // namespace outbox::sink::rabbitmq
