#include <algorithm>
#include <outbox/worker.hpp>
#include <utility>

namespace outbox {

Handlers& Handlers::add(Handler handler) {
  const auto same = std::find_if(all_.begin(), all_.end(),
                                 [&](const Handler& one) { return one.type == handler.type; });
  if (same == all_.end()) {
    all_.push_back(std::move(handler));
  } else {
    *same = std::move(handler);
  }
  return *this;
}

}  // namespace outbox
