// What the registry holds of one kind of sink.
#pragma once

#include <functional>
#include <memory>
#include <outbox/sink.hpp>

#include "sink/registry.hpp"
#include "sink/settings.hpp"

namespace outbox::sink {

struct Kind {
  SinkInfo info;
  /// What names, types and `required` cannot say; opens nothing. Empty: nothing more to check.
  std::function<Status(const Settings&)> check;
  std::function<Result<std::unique_ptr<Sink>>(const Settings&)> make;
};

}  // namespace outbox::sink
