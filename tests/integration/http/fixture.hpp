// Makes HTTP sinks for tests, which send to a receiver that does what the path says.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "conformance/sink/http_server.hpp"
#include "conformance/sink/making.hpp"
#include "conformance/sink/sending.hpp"
#include "conformance/sink/suite.hpp"

namespace outbox::test {

[[nodiscard]] inline std::unique_ptr<Sink> make_http_sink(const std::string& url,
                                                          SinkSettings settings) {
  SubscriptionSpec spec = make_spec("http", std::move(settings));
  spec.format = "json";
  spec.sink_settings.emplace("url", url);
  spec.sink_settings.emplace("allow_http", "true");
  spec.sink_settings.emplace("allow_networks", "127.0.0.0/8");
  spec.sink_settings.emplace("deadline", "5s");
  spec.sink_settings.emplace("connect_timeout", "5s");
  return make_sink(spec);
}

}  // namespace outbox::test
