#include "config/store_url.hpp"

#include "config/reference.hpp"
#include "store/url.hpp"

namespace outbox::config {

Result<std::string> resolve_store_url(const std::string& text, const std::string& directory) {
  return resolve(
      text, directory, [](std::string_view before, std::string_view after, std::string_view value) {
        const std::string right = without_references(after);
        const bool whole = before.ends_with('=') && (right.empty() || right.front() == ' ');
        return store::fitted(without_references(before), right, value, whole);
      });
}

}  // namespace outbox::config
