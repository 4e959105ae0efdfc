// The local clock of a zone as the C library sees it, which reads zone files with code of its own.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

namespace outbox::schedule {

class ZoneClock {
 public:
  explicit ZoneClock(const std::string& zone) {
    ::setenv("TZ", (":" + zone).c_str(), 1);
    ::tzset();
  }
  ZoneClock(const ZoneClock&) = delete;
  ZoneClock& operator=(const ZoneClock&) = delete;
  ZoneClock(ZoneClock&&) = delete;
  ZoneClock& operator=(ZoneClock&&) = delete;
  ~ZoneClock() {
    ::unsetenv("TZ");
    ::tzset();
  }

  [[nodiscard]] std::tm at(std::int64_t time) const {
    const std::time_t moment = time;
    std::tm local{};
    ::localtime_r(&moment, &local);
    return local;
  }
};

}  // namespace outbox::schedule
