#include "conformance/sink/server_harness.hpp"

#include <gtest/gtest.h>

#include "sink/registry.hpp"

namespace outbox::test {

std::unique_ptr<Sink> ServerHarness::make(const SinkSettings& settings) const {
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = sink();
  spec.sink_settings = settings;
  auto made = sink::make_sink(spec);
  if (made) return std::move(*made);
  ADD_FAILURE() << made.error().text();
  return nullptr;
}

}  // namespace outbox::test
