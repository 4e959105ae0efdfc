// outbox/testing.hpp: sinks for an application's own tests. Link outbox::testing.
//
//   auto sink = std::make_unique<outbox::testing::RecordingSink>();
//   auto recorded = sink->recording();
//   relay->use("orders", std::move(sink));
//   ...
//   EXPECT_EQ(recorded->events().size(), 3u);
//
// Threads: Recording: Any thread. The sinks: One thread at a time.
// Lifetime: a Recording outlives its sink.
// Errors: none.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

namespace outbox::testing {

/// What a RecordingSink received, copied.
struct RecordedEvent {
  std::int64_t seq{0};
  EventId id{};
  std::string aggregate_type;
  std::string aggregate_id;
  std::string event_type;
  std::string topic;
  std::string key;
  std::string body;
  std::vector<Header> headers;
};

class Recording {
 public:
  Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  Recording(Recording&&) = delete;
  Recording& operator=(Recording&&) = delete;
  ~Recording();

  [[nodiscard]] std::vector<RecordedEvent> events() const;
  /// Waits until at least `count` events were recorded; false: `limit` passed first.
  [[nodiscard]] bool wait_for(std::size_t count, std::chrono::milliseconds limit) const;
  void add(RecordedEvent event);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

/// Acks and remembers everything, in order.
class RecordingSink final : public BatchSink {
 public:
  RecordingSink();
  [[nodiscard]] std::shared_ptr<const Recording> recording() const { return recording_; }
  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  void close() noexcept override;

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& failure) override;

 private:
  std::shared_ptr<Recording> recording_;
};

/// `decide` returns the outcome of each event. An acked event is recorded as by a RecordingSink. A
/// gapless sink delivers nothing after another outcome until the relay opens it again.
class FailingSink final : public BatchSink {
 public:
  using Decide = std::function<Outcome::Kind(const EventView&)>;
  /// `traits`: without `gapless` it continues after a failure. Default: gapless.
  explicit FailingSink(Decide decide, SinkTraits traits = {.name = "failing", .gapless = true});
  [[nodiscard]] std::shared_ptr<const Recording> recording() const { return recording_; }
  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  void close() noexcept override;

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& failure) override;

 private:
  Decide decide_;
  SinkTraits traits_;
  std::shared_ptr<Recording> recording_;
  bool failed_{false};
};

}  // namespace outbox::testing
