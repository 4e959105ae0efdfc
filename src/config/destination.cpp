#include "config/destination.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox::config {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kLongestTopic = 249;

/// A template without what each event puts in; a brace of its own stays.
std::string without_fields(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool field = text.starts_with('{') && !text.starts_with("{{");
    if (!field) out += text.front();
    const std::size_t end = field ? std::min(text.find('}'), text.size() - 1) + 1 : 1;
    text.remove_prefix(end);
  }
  return out;
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && stop == end && port > 0;
}

bool is_broker(std::string_view text) {
  if (const std::size_t scheme = text.find("://"); scheme != npos) text.remove_prefix(scheme + 3);
  const std::size_t bracket = text.find(']');  // [::1]:9092
  const std::size_t colon = text.find(':', bracket == npos ? 0 : bracket);
  const std::string_view host = text.substr(0, colon);
  const bool is_host = !host.empty() && host.find_first_of(" /\t") == npos;
  return is_host && (colon == npos || is_port(text.substr(colon + 1)));
}

}  // namespace

Status check_kafka_topic(std::string_view topic) {
  const bool made = topic.find_first_of("{}") != npos;
  const std::string fixed = made ? "x" + without_fields(topic) : std::string(topic);
  const auto allowed = [](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-'; };
  const bool good = !fixed.empty() && fixed.size() <= kLongestTopic && fixed != "." &&
                    fixed != ".." && std::all_of(fixed.begin(), fixed.end(), allowed);
  if (good) return {};
  const char* const what = made ? "makes no name of a Kafka topic" : "is no name of a Kafka topic";
  return fail(Errc::invalid_argument, topic.empty() ? "is empty" : what,
              "letters, digits, '.', '_' and '-', at most 249 of them");
}

Status check_file(const std::string& path) {
  if (path.starts_with('~')) {
    return fail(Errc::invalid_argument, "begins with ~, which only a shell replaces",
                "write the directory out, or ${env:HOME} in its place");
  }
  return {};
}

Status check_place_of_file(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return fail(Errc::not_found, "there is no directory " + directory.string(),
                "mkdir -p " + directory.string());
  }
  if (std::filesystem::is_directory(path, error))
    return fail(Errc::invalid_argument, "is a directory", "name a file in it");
  const bool there = std::filesystem::exists(path, error);
  const char* const used = there ? path.c_str() : directory.c_str();
  if (faccessat(AT_FDCWD, used, W_OK, AT_EACCESS) == 0) return {};
  return fail(Errc::permission_denied,
              std::string(used) + ": " + std::generic_category().message(errno),
              "run the relay as a user who may write there");
}

Status check_brokers(std::string_view brokers) {
  while (true) {
    const std::size_t comma = brokers.find(',');
    if (!is_broker(trimmed(brokers.substr(0, comma)))) {
      return fail(Errc::invalid_argument, "has an entry that is no HOST:PORT",
                  "such as kafka-1:9092,kafka-2:9092");
    }
    if (comma == npos) return {};
    brokers.remove_prefix(comma + 1);
  }
}

}  // namespace outbox::config
