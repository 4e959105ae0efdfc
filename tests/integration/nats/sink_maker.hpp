// Makes a NATS sink for a stream, with the settings that a test wants, as the registry makes it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "integration/nats/server.hpp"
#include "sink/registry.hpp"

namespace outbox::test {

using NatsGiven = std::map<std::string, std::string>;

/// Settings that reach the server, through this port if one is given.
[[nodiscard]] inline NatsGiven nats_settings(const NatsServer& server, int port = 0) {
  return {{"url", fmt::format("nats://127.0.0.1:{}", port == 0 ? server.port : port)},
          {"username", server.user},
          {"password", server.password},
          {"connect_timeout", "2s"},
          {"deadline", "3s"}};
}

/// Makes a sink. The settings of `given` precede the defaults.
[[nodiscard]] inline std::unique_ptr<Sink> make_nats_sink(NatsGiven given,
                                                          const NatsGiven& defaults,
                                                          const std::string& name = "orders") {
  SubscriptionSpec spec;
  spec.name = name;
  spec.sink = "nats";
  given.insert(defaults.begin(), defaults.end());
  std::erase_if(given, [](const auto& one) { return one.second == "-"; });
  spec.sink_settings = std::move(given);
  auto made = sink::make_sink(spec);
  if (!made) {
    ADD_FAILURE() << made.error().text();
    return nullptr;
  }
  return std::move(*made);
}

[[nodiscard]] inline std::unique_ptr<Sink> make_nats_sink(const NatsStream& stream,
                                                          NatsGiven given = {},
                                                          const std::string& name = "orders") {
  NatsGiven defaults = nats_settings(stream.server());
  defaults["stream"] = stream.name();
  return make_nats_sink(std::move(given), defaults, name);
}

}  // namespace outbox::test
