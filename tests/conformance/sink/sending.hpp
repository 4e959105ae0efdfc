// A load that is sent once.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "conformance/sink/suite.hpp"

namespace outbox::test {

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
  /// The outcome of the only message that was not acked; `acked` if all were.
  [[nodiscard]] Outcome outcome() const {
    if (!relay_.failures().empty()) return relay_.failures().front().outcome;
    return {.kind = Outcome::Kind::acked};
  }

 private:
  std::unique_ptr<Sink> sink_;
  MiniRelay relay_;
};

}  // namespace outbox::test
