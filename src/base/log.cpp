#include "base/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace outbox::log {
namespace {

/// %* : the message as the inside of a JSON string.
class JsonText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    for (const char c : message.payload) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out.push_back('\\');
        out.push_back(c);
      } else if (byte < 0x20) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(byte));
      } else {
        out.push_back(c);
      }
    }
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonText>();
  }
};

std::shared_ptr<spdlog::logger> make() {
  auto made =
      std::make_shared<spdlog::logger>("outbox", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  made->set_level(spdlog::level::warn);
  made->flush_on(spdlog::level::info);
  return made;
}

}  // namespace

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = make();
  return *instance;
}

void configure(const std::string& level, Format format) {
  logger().set_level(spdlog::level::from_str(level));
  if (format == Format::json) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
    formatter->add_flag<JsonText>('*').set_pattern(
        R"({"ts":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l","msg":"%*"})");
    logger().set_formatter(std::move(formatter));
  }
}

}  // namespace outbox::log
