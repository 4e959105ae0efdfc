#include "sink/http/signature.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "event/base64.hpp"

namespace outbox::sink::http {
namespace {

constexpr std::string_view kPrefix = "whsec_";
/// The length of the key that the base64 encodes.
constexpr std::size_t kLeastBytes = 24;
constexpr std::size_t kMostBytes = 64;
constexpr std::size_t kDigestBytes = 16;

constexpr const char* kSecretShape =
    "whsec_ and the base64 of 24 to 64 random bytes: printf 'whsec_%s\\n' \"$(openssl rand -base64 32)\"";

using Hash = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

std::string_view to_text(const Hash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

const unsigned char* to_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// The key in the secret; nullopt if the text is not a secret.
std::optional<std::string> decode_key(std::string_view secret) {
  if (!secret.starts_with(kPrefix)) return std::nullopt;
  const auto key = event::read_base64(secret.substr(kPrefix.size()));
  if (!key || key->size() < kLeastBytes || key->size() > kMostBytes) return std::nullopt;
  return *key;
}

std::string signature(std::string_view key, std::string_view text) {
  Hash hash{};
  unsigned size = 0;
  OUTBOX_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), to_bytes(text),
                    text.size(), hash.data(), &size) != nullptr);
  return "v1," + event::base64_text(to_text(hash));
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,";
  std::vector<std::string> words;
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBetween, end);
  }
  return words;
}

Result<Signer> Signer::parse(std::string_view secrets) {
  Signer signer;
  for (const std::string& secret : split_words(secrets)) {
    auto key = decode_key(secret);
    if (!key) {
      return fail(Errc::invalid_argument,
                  fmt::format("secret {} is not one of Standard Webhooks", signer.keys_.size() + 1),
                  kSecretShape);
    }
    signer.keys_.push_back(std::move(*key));
  }
  return signer;
}

std::string Signer::sign(std::string_view id, std::int64_t timestamp, std::string_view body) const {
  const std::string text = fmt::format("{}.{}.{}", id, timestamp, body);
  std::string all;
  for (const std::string& key : keys_) {
    if (!all.empty()) all += ' ';
    all += signature(key, text);
  }
  return all;
}

std::string make_digest(std::string_view text) {
  return sha256_digits(text).substr(0, 2 * kDigestBytes);
}

}  // namespace outbox::sink::http
