// SHA-256 of a text, for modules that link libcrypto. Pure.
#pragma once

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox {

/// The hash as 64 hexadecimal digits.
[[nodiscard]] inline std::string sha256_digits(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  OUTBOX_CHECK(SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                      hash.data()) != nullptr);
  std::string digits;
  for (const unsigned char byte : hash) append_hex(digits, static_cast<char>(byte));
  return digits;
}

/// Compares secrets. It takes the same time wherever they differ, and whatever their lengths are.
[[nodiscard]] inline bool is_same_secret(std::string_view a, std::string_view b) {
  const std::string left = sha256_digits(a);
  const std::string right = sha256_digits(b);
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace outbox
