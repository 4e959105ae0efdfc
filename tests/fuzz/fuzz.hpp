// What the targets share. A target is one function that is given any bytes and must not crash, read
// beyond them, or break the properties that it states; driver.cpp runs it as a test, libFuzzer for
// longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace outbox::fuzz {

/// Ends the process, so that the input is kept.
#define OUTBOX_PROPERTY(condition) \
  ((condition) ? void() : ::outbox::fuzz::broken(__FILE__, __LINE__, #condition))
[[noreturn]] void broken(const char* file, int line, const char* property);

inline std::string_view to_text(const std::uint8_t* data, std::size_t size) {
  return size == 0 ? std::string_view("")
                   : std::string_view(reinterpret_cast<const char*>(data), size);
}

/// The input divided at each '~' into exactly so many parts; the last one has the rest.
inline std::vector<std::string_view> split_parts(std::string_view text, std::size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const std::size_t end = text.find('~');
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace outbox::fuzz
