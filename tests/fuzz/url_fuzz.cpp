// Reads addresses of stores: URL~PASSWORD. What is shown of an address holds no password.
#include <string>

#include "fuzz/fuzz.hpp"
#include "pg/url.hpp"
#include "store/url.hpp"

namespace {

using namespace outbox;

std::string find_password(const std::string& url) {
  char* error = nullptr;
  const pg::Options options(PQconninfoParse(url.c_str(), &error));
  PQfreemem(error);
  for (const auto* option = options.get(); option != nullptr && option->keyword != nullptr;
       ++option) {
    if (std::string_view(option->keyword) == "password" && option->val != nullptr)
      return option->val;
  }
  return {};
}

void check_password(const std::string& password) {
  const std::string before = "postgresql://app:";
  const std::string after = "@127.0.0.1/shop";
  const std::string url = before + store::fitted(before, after, password, false) + after;
  OUTBOX_PROPERTY(store::check_url(url).has_value());
  OUTBOX_PROPERTY(find_password(url) == password);
  const std::string without = store::shown_url(before + "x" + after);
  OUTBOX_PROPERTY(store::shown_url(url) == without);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::split_parts(fuzz::to_text(data, size), 2);
  const std::string url(parts[0]);
  const Status status = store::check_url(url);
  OUTBOX_PROPERTY(status || !status.error().message.empty());
  OUTBOX_PROPERTY(!store::shown_url(url).empty() || url.empty());
  (void)store::find_file(url);
  const std::string password(parts[1].substr(0, parts[1].find('\0')));
  if (!password.empty()) check_password(password);
  return 0;
}
