// Base64 as a string. Pure.
#pragma once

#include <string>
#include <string_view>

#include "event/base64.hpp"

namespace outbox::sink {

[[nodiscard]] inline std::string base64_text(std::string_view bytes) {
  std::string text(event::base64_length(bytes.size()), '\0');
  event::write_base64(bytes, text.data());
  return text;
}

}  // namespace outbox::sink
