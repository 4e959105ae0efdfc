// Where the keys come from that requests are signed with: the settings, else the environment, else
// what the container or the EC2 instance was given. AWS's own clients do the same, and know files
// and profiles, SSO and web identities besides (AWS SDKs and Tools Reference Guide: "Container
// credential provider", "IMDS credential provider").
#pragma once

#include <functional>
#include <outbox/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sink/sqs/config.hpp"

namespace outbox::sink::sqs {

struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  ///< Empty for a lasting key.
};

/// The value of a variable; empty if it is not set.
using Environment = std::function<std::string(const char*)>;
[[nodiscard]] std::string process_environment(const char* name);

/// A request for credentials to an address of this machine or its network.
struct CredentialRequest {
  const char* method{"GET"};
  std::string url;
  std::vector<std::string> headers{};  ///< "name: value"
};
/// The body of the answer if that was 200.
using Fetch = std::function<Result<std::string>(const CredentialRequest&)>;

/// Blocks as long as `fetch` does. An error says where it looked.
[[nodiscard]] Result<Credentials> find_credentials(const SqsSettings& settings,
                                                   const Environment& environment,
                                                   const Fetch& fetch);

}  // namespace outbox::sink::sqs
