// Prints what happens in a world, step by step, for a person who replays a seed.
#pragma once

#include <cstdio>
#include <sstream>

#include "relay/trust_deadline.hpp"

namespace outbox::sim {

class Trace {
 public:
  Trace(bool on, const relay::TimePoint& now) : on_(on), now_(now) {}

  template <class... Parts>
  void operator()(const Parts&... parts) const {
    if (!on_) return;
    std::ostringstream line;
    line << std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch()).count()
         << ' ';
    (line << ... << parts) << '\n';
    std::fputs(line.str().c_str(), stdout);
  }

 private:
  const bool on_;
  const relay::TimePoint& now_;
};

}  // namespace outbox::sim
