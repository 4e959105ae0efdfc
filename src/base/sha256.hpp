// SHA-256 of a text, for modules that link libcrypto. Pure.
#pragma once

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

}  // namespace outbox
