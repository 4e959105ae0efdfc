// Makes HTTP sinks for tests, which send to a receiver that does what the path says.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "conformance/sink/http_server.hpp"
#include "conformance/sink/sending.hpp"
#include "conformance/sink/suite.hpp"
#include "sink/registry.hpp"

namespace outbox::test {

using SinkSettings = std::map<std::string, std::string>;

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

[[nodiscard]] inline std::unique_ptr<Sink> make_http_sink(const std::string& url,
                                                          SinkSettings settings) {
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = "http";
  spec.format = "json";
  spec.sink_settings = std::move(settings);
  spec.sink_settings.emplace("url", url);
  spec.sink_settings.emplace("allow_http", "true");
  spec.sink_settings.emplace("allow_networks", "127.0.0.0/8");
  spec.sink_settings.emplace("deadline", "2s");
  spec.sink_settings.emplace("connect_timeout", "2s");
  auto made = sink::make_sink(spec);
  if (made) return std::move(*made);
  ADD_FAILURE() << made.error().text();
  return nullptr;
}

}  // namespace outbox::test
