#include "support/servers.hpp"

#include <algorithm>
#include <cstdlib>

namespace outbox::test {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

int soak_factor() {
  const auto text = environment("OUTBOX_TEST_SOAK");
  return text ? std::max(1, std::atoi(text->c_str())) : 1;
}

}  // namespace outbox::test
