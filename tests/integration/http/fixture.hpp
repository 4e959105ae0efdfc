// An HTTP sink and a receiver that does what the path says.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "conformance/sink/http_server.hpp"
#include "conformance/sink/load.hpp"
#include "conformance/sink/mini_relay.hpp"
#include "sink/registry.hpp"
#include "support/testkit.hpp"

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

/// A sink, and what happens to messages that are sent with it once.
class Sending {
 public:
  Sending(std::unique_ptr<Sink> sink, const Load& load)
      : sink_(std::move(sink)), relay_(*sink_, load) {
    const Status opened = sink_->open();
    EXPECT_TRUE(opened) << opened.error().text();
    relay_.offer_all();
    EXPECT_TRUE(relay_.drain());
  }
  ~Sending() { sink_->close(); }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  Sending(Sending&&) = delete;
  Sending& operator=(Sending&&) = delete;

  [[nodiscard]] MiniRelay& relay() { return relay_; }
  /// Of the only message that was not acked; `acked` when all were.
  [[nodiscard]] Outcome outcome() const {
    if (!relay_.failures().empty()) return relay_.failures().front().outcome;
    return {.kind = Outcome::Kind::acked};
  }

 private:
  std::unique_ptr<Sink> sink_;
  MiniRelay relay_;
};

}  // namespace outbox::test
