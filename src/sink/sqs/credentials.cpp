#include "sink/sqs/credentials.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/text_file.hpp"
#include "sink/endpoint.hpp"

namespace outbox::sink::sqs {
namespace {

constexpr const char* kContainerHost = "http://169.254.170.2";
constexpr const char* kInstanceHost = "http://169.254.169.254";
constexpr const char* kRolePath = "/latest/meta-data/iam/security-credentials/";
constexpr std::size_t kMostTokenBytes = std::size_t{64} << 10U;
constexpr Scheme kCredentialSchemes[] = {{.name = "http", .default_port = 80},
                                         {.name = "https", .default_port = 443}};

constexpr const char* kWays =
    "set sqs.access_key and sqs.secret_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the container or the instance a "
    "role; files and profiles of the AWS tools, SSO and web identities are not read";

tl::unexpected<Error> none(std::string why) {
  return fail(Errc::permission_denied, Remedy::retry_call,
              "sqs: there are no credentials: " + std::move(why), kWays);
}

std::string read_text(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Fails for credentials that cannot be in header fields.
Result<Credentials> checked(Credentials found) {
  if (has_control(found.access_key) || has_control(found.session_token))
    return none("those that were found have line breaks or other control characters");
  return found;
}

/// Reads an answer; those of both endpoints have the same members.
Result<Credentials> read_credentials(const std::string& body, const std::string& from) {
  const auto json = try_parse_json<nlohmann::json>(body);
  if (!json.is_object()) return none(from + " does not answer with JSON");
  Credentials found{.access_key = read_text(json, "AccessKeyId"),
                    .secret_key = read_text(json, "SecretAccessKey"),
                    .session_token = read_text(json, "Token")};
  if (found.access_key.empty() || found.secret_key.empty())
    return none("the answer of " + from + " has none");
  return checked(std::move(found));
}

/// Whether the endpoint may be asked. Without TLS others could read the credentials, or choose who
/// gets the container's token, so only these hosts may be asked.
bool may_ask(const Endpoint& endpoint) {
  return endpoint.scheme == "https" || endpoint.is_loopback() || endpoint.host == "169.254.170.2" ||
         endpoint.host == "169.254.170.23" || endpoint.host == "fd00:ec2::23";
}

/// The container's token; empty if there is none.
Result<std::string> container_token(const Environment& environment) {
  if (const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !file.empty()) {
    const auto read = read_text_file(file, kMostTokenBytes);
    if (!read) return none(file + ": " + read.error().message);
    return read->text.substr(0, read->text.find_first_of("\r\n"));
  }
  return environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
}

Result<Credentials> of_container(const std::string& url, const Environment& environment,
                                 const Fetch& fetch) {
  FieldErrors errors;
  const auto endpoints = parse_endpoints("AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                         url.substr(0, url.find('?')), kCredentialSchemes, errors);
  if (endpoints.size() != 1 || !may_ask(endpoints[0])) {
    return none("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor on this machine");
  }
  OUTBOX_TRY(const std::string token, container_token(environment));
  CredentialRequest request{.url = url};
  if (has_control(token)) return none("the container's token has control characters");
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  OUTBOX_TRY(const std::string body, fetch(request));
  return read_credentials(body, endpoints[0].shown());
}

Result<Credentials> of_instance(std::string host, const Fetch& fetch) {
  while (host.ends_with('/')) host.pop_back();
  OUTBOX_TRY(const std::string token,
             fetch({.method = "PUT",
                    .url = host + "/latest/api/token",
                    .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"}}));
  if (has_control(token)) return none("the instance's token has control characters");
  const std::vector<std::string> headers{"X-aws-ec2-metadata-token: " + token};
  OUTBOX_TRY(std::string role, fetch({.url = host + kRolePath, .headers = headers}));
  role.resize(std::min(role.find_first_of("\r\n"), role.size()));
  if (role.empty()) return none("the instance has no role");
  OUTBOX_TRY(
      const std::string body,
      fetch({.url = host + kRolePath + percent_encoded(role, "-._~+=,@"), .headers = headers}));
  return read_credentials(body, host);
}

}  // namespace

std::string process_environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets them
  return value == nullptr ? std::string() : std::string(value);
}

Result<Credentials> find_credentials(const SqsSettings& settings, const Environment& environment,
                                     const Fetch& fetch) {
  if (!settings.access_key.empty()) {
    return Credentials{.access_key = settings.access_key,
                       .secret_key = settings.secret_key,
                       .session_token = settings.session_token};
  }
  Credentials found{.access_key = environment("AWS_ACCESS_KEY_ID"),
                    .secret_key = environment("AWS_SECRET_ACCESS_KEY"),
                    .session_token = environment("AWS_SESSION_TOKEN")};
  if (!found.access_key.empty() && !found.secret_key.empty()) return checked(std::move(found));
  if (const std::string path = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty())
    return of_container(kContainerHost + path, environment, fetch);
  if (const std::string url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI"); !url.empty())
    return of_container(url, environment, fetch);
  if (equal_ignoring_case(environment("AWS_EC2_METADATA_DISABLED"), "true"))
    return none("neither in the settings nor in the environment");
  const std::string host = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  return of_instance(host.empty() ? kInstanceHost : host, fetch);
}

}  // namespace outbox::sink::sqs
