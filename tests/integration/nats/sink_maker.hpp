// Makes a NATS sink for a stream, with the settings that a test wants, as the registry makes it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "conformance/sink/making.hpp"
#include "integration/nats/server.hpp"

namespace outbox::test {

using NatsGiven = std::map<std::string, std::string>;

/// Settings that reach the server, through this port if one is given.
[[nodiscard]] inline NatsGiven nats_settings(const NatsServer& server, int port = 0) {
  return {{"url", fmt::format("nats://127.0.0.1:{}", port == 0 ? server.port : port)},
          {"username", server.user},
          {"password", server.password},
          {"connect_timeout", "5s"},
          {"deadline", "5s"}};
}

/// Makes a sink. The settings of `given` precede the defaults.
[[nodiscard]] inline std::unique_ptr<Sink> make_nats_sink(NatsGiven given,
                                                          const NatsGiven& defaults,
                                                          const std::string& name = "orders") {
  given.insert(defaults.begin(), defaults.end());
  std::erase_if(given, [](const auto& one) { return one.second == "-"; });
  return make_sink(make_spec("nats", std::move(given), name));
}

[[nodiscard]] inline std::unique_ptr<Sink> make_nats_sink(const NatsStream& stream,
                                                          NatsGiven given = {},
                                                          const std::string& name = "orders") {
  NatsGiven defaults = nats_settings(stream.server());
  defaults["stream"] = stream.name();
  return make_nats_sink(std::move(given), defaults, name);
}

}  // namespace outbox::test
