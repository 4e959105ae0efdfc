#include "support/shop_options.hpp"

#include <string_view>

namespace outbox::test {

std::string body_of(const std::string& id, const std::string& key, std::int64_t version,
                    std::size_t padding) {
  return R"({"id": ")" + id + R"(", "key": ")" + key + R"(", "pad": ")" +
         std::string(padding, 'x') + R"(", "version": )" + std::to_string(version) + "}";
}

std::string id_in(const std::string& body) {
  constexpr std::string_view start = R"({"id": ")";
  return body.rfind(start, 0) == 0 ? body.substr(start.size(), 36) : std::string();
}

}  // namespace outbox::test
