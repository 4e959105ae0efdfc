#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace outbox::log {
namespace {

struct Logger {
  Logger() : out("outbox", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    out.set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    out.set_level(spdlog::level::warn);
    out.flush_on(spdlog::level::info);
  }

  spdlog::logger out;
  Format format{Format::text};
};

Logger& logger() {
  static Logger instance;
  return instance;
}

void write(spdlog::level::level_enum level, Constant message, Fields fields) {
  Logger& to = logger();
  if (!to.out.should_log(level)) return;
  if (to.format == Format::text) {
    to.out.log(level, text_line(message.text(), fields));
  } else {
    // The pattern writes the opening brace.
    to.out.log(level, std::string_view(json_line(message.text(), fields)).substr(1));
  }
}

}  // namespace

void configure(const std::string& level, Format format) {
  Logger& to = logger();
  to.out.set_level(spdlog::level::from_str(level));
  to.format = format;
  if (format == Format::json) {
    to.out.set_pattern(R"({"ts":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v)",
                       spdlog::pattern_time_type::utc);
  }
}

void debug(Constant message, Fields fields) { write(spdlog::level::debug, message, fields); }
void info(Constant message, Fields fields) { write(spdlog::level::info, message, fields); }
void warn(Constant message, Fields fields) { write(spdlog::level::warn, message, fields); }
void error(Constant message, Fields fields) { write(spdlog::level::err, message, fields); }

}  // namespace outbox::log
