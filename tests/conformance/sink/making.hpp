// Makes sinks for tests as the registry makes them, and says what it finds wrong with settings.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "sink/registry.hpp"

namespace outbox::test {

using SinkSettings = std::map<std::string, std::string>;

[[nodiscard]] inline SubscriptionSpec make_spec(std::string sink, SinkSettings settings,
                                                std::string name = "orders") {
  SubscriptionSpec spec;
  spec.name = std::move(name);
  spec.sink = std::move(sink);
  spec.sink_settings = std::move(settings);
  return spec;
}

/// Makes a sink. If that fails, so does the test, and there is none.
[[nodiscard]] inline std::unique_ptr<Sink> make_sink(const SubscriptionSpec& spec) {
  auto made = sink::make_sink(spec);
  if (made) return std::move(*made);
  ADD_FAILURE() << made.error().text();
  return nullptr;
}

/// What is wrong with the settings, as "message (hint: ...)"; empty if nothing is.
[[nodiscard]] inline std::string find_complaint(const SubscriptionSpec& spec) {
  const Status checked = sink::check_settings(spec);
  return checked ? "" : checked.error().text();
}

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace outbox::test
