// Signatures of Standard Webhooks 1.0.0 (https://github.com/standard-webhooks/standard-webhooks,
// "Signature scheme"): HMAC-SHA256 over id.timestamp.body, once with each secret, so that secrets
// can be exchanged without a gap. Pure.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::sink::http {

class Signer {
 public:
  /// Parses secrets (whsec_ and base64) with blanks or commas between them; there may be none. An
  /// error never quotes them.
  [[nodiscard]] static Result<Signer> parse(std::string_view secrets);

  [[nodiscard]] bool signs() const { return !keys_.empty(); }
  /// The header webhook-signature, "v1,... v1,...", in the order of the secrets. `id` has no dot.
  [[nodiscard]] std::string sign(std::string_view id, std::int64_t timestamp,
                                 std::string_view body) const;

 private:
  std::vector<std::string> keys_;
};

/// The parts of a text between blanks or commas.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text);

/// The first 16 bytes of the text's SHA-256 as hexadecimal digits.
[[nodiscard]] std::string make_digest(std::string_view text);

}  // namespace outbox::sink::http
