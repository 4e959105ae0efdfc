#include "config/destination.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "event/ascii.hpp"

namespace outbox::config {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kLongestTopic = 249;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
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
  if (topic.find_first_of("{}") != npos) return {};
  const auto allowed = [](char c) {
    return event::is_alnum(c) || c == '.' || c == '_' || c == '-';
  };
  const bool good = !topic.empty() && topic.size() <= kLongestTopic && topic != "." &&
                    topic != ".." && std::all_of(topic.begin(), topic.end(), allowed);
  if (good) return {};
  return fail(Errc::invalid_argument, topic.empty() ? "is empty" : "is no name of a Kafka topic",
              "letters, digits, '.', '_' and '-', at most 249 of them");
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
