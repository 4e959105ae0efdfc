// outbox/sink.hpp: a destination of events, and the outcome that it reports for each of them.
//
// A sink takes messages (send, returns at once) and hands back one Outcome for each (receive, in
// any order). For simple destinations derive from BatchSink and write one blocking function:
//
//   class Printer final : public outbox::BatchSink {
//    public:
//     outbox::SinkTraits traits() const noexcept override {
//       return {.name = "printer", .gapless = true};
//     }
//     outbox::Status open() override { return {}; }
//     void close() noexcept override {}
//
//    protected:
//     std::size_t deliver(std::span<const outbox::Message> batch,
//                         outbox::Outcome& failure) override {
//       for (const auto& message : batch) std::puts(std::string(message.body).c_str());
//       return batch.size();
//     }
//   };
//
// Threads: One thread at a time: the relay calls one instance from one thread, so implementations
//          need no locks. `wake` and `on_ready` may be called from any thread.
// Lifetime: the relay owns the sink and destroys it after close().
// Errors: open() returns what is wrong; errors of single messages are Outcomes. No virtual may
//         throw.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/time.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace outbox {

/// Identifies a message from send() to its outcome. A token is not used again, except that a
/// message that was not acked may have the same token when it is sent again.
using Token = std::uint64_t;

struct HeaderView {
  std::string_view name;
  std::string_view value;
  /// It has no value, where the destination knows the difference to an empty one (Kafka).
  bool absent{false};
};

/// One event as it is rendered for a destination, by route and format. Everything in it is valid
/// only during send().
struct Message {
  Token token{0};
  const EventView* event{nullptr};
  std::string_view topic;  ///< Topic, subject, routing key or path, by the route. May be empty.
  std::optional<std::string_view> key;  ///< The message key; none for an event without a key.
  std::string_view body;
  /// Whether the message says that the aggregate is gone, where the destination has such messages
  /// (Kafka: without a value). The body is empty then.
  bool tombstone{false};
  std::string_view content_type;
  std::span<const HeaderView> headers;
  /// The number of this attempt, from 1, by the count that leads to `dead`.
  std::size_t attempt{1};
};

namespace detail {

struct OfTask {
  /// `final` and retry_after decide what follows a rejection, not the delays of the subscription.
  bool own_schedule{false};
  /// What is postponed may be done at once by any worker that has a thread free.
  bool for_any_worker{false};
};

}  // namespace detail

/// What became of one message.
struct Outcome {
  enum class Kind : std::uint8_t {
    unknown,   ///< It may have been delivered. It is sent again with the same id. The default.
    acked,     ///< The destination has it, durably.
    retry,     ///< It was not delivered and is sent again later.
    rejected,  ///< The event is at fault.
    blocked,   ///< The destination is at fault: no attempt is counted, the subscription pauses.
    /// It was not delivered, but nothing is at fault: no attempt is counted, and the event is set
    /// aside until retry_after.
    postponed,
  };
  /// How much of the destination is blocked.
  enum class Scope : std::uint8_t { all, host, partition };

  Token token{0};
  Kind kind{Kind::unknown};
  Scope scope{Scope::all};
  Error error{};
  /// The pause that the destination asked for: of this event if it is `rejected` or `postponed`,
  /// else of all events.
  std::optional<Duration> retry_after{};
  /// Only if `rejected`: no attempt can succeed, so the event is dead.
  bool final{false};
  /// Only if `rejected`: the sink refused the message itself, before the client of the destination
  /// had any of it (an illegal name, a message that is too large or that the protocol cannot
  /// express). That stops nothing and says nothing about the destination. A gapless sink goes on,
  /// too, but takes nothing behind the message in the same send(); the relay then offers the rest,
  /// except later events of its key.
  bool unsent{false};
  /// Set by workers only.
  detail::OfTask task{};
};

[[nodiscard]] const char* to_string(Outcome::Kind kind) noexcept;

struct SinkTraits {
  /// The name of the sink in logs and metrics ("http").
  std::string_view name;
  /// Whether the sink itself stops at the first failure: after a message was not acked, no later
  /// message of its key is delivered until the relay has called open() again (but see
  /// Outcome::unsent). Then many events of a key may be in flight; otherwise the relay keeps one
  /// event per key in flight. Set it only if a test on the real destination shows it. Default:
  /// false.
  bool gapless{false};
  /// The most messages that the relay hands over in one send(). Default: 1000.
  std::size_t max_batch{1000};
  /// The most messages in flight at once. Default: 10000.
  std::size_t max_in_flight{10000};
  /// Whether the outcome of one message says nothing about the others, however many are rejected or
  /// take long at once. A message that has no outcome after 1 s is set aside. Not for a gapless
  /// sink. Default: false.
  bool independent{false};
  /// The prefix of CloudEvents attributes in binary mode, by the protocol binding of the
  /// destination: "ce-" (the values are percent-encoded then), "ce_" or "cloudEvents:". Default:
  /// ce-.
  std::string_view attribute_prefix{"ce-"};
};

class Sink {
 public:
  Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  Sink(Sink&&) = delete;
  Sink& operator=(Sink&&) = delete;
  virtual ~Sink();

  [[nodiscard]] virtual SinkTraits traits() const noexcept = 0;

  /// Connects or prepares. The relay calls it before the first send(), and again after the
  /// destination has failed, when nothing is in flight. Of a gapless sink it calls it after each
  /// failure, which the sink then forgets, but not after a message that was refused unsent. Several
  /// calls do no harm. May block for seconds.
  [[nodiscard]] virtual Status open() = 0;

  /// Takes messages in order and returns how many it took; the others are offered again later.
  /// Returns at once: a call that takes seconds delays its own subscription, and a call that
  /// outlasts the grace period of a stop leaks its thread.
  [[nodiscard]] virtual std::size_t send(std::span<const Message> messages) = 0;

  /// Appends the outcomes that are ready now, without waiting. Each message that was taken gets
  /// exactly one outcome. Called after each send() and each wake(), and at least every 100 ms while
  /// something is in flight, so that a sink may check its deadlines here.
  virtual void receive(std::vector<Outcome>& outcomes) = 0;

  /// Gives up everything in flight: receive() then returns an outcome for each message, `unknown`
  /// if it may have been delivered. Called when the relay may no longer send, and at its end. Must
  /// not block for more than a second.
  virtual void purge() = 0;

  /// Closes the connection; nothing is in flight. open() may follow: a relay that has lost its
  /// lanes closes its sinks, because the next owner of the lanes may need what they hold.
  virtual void close() noexcept = 0;

  /// Sets what wake() calls. The relay calls it.
  void on_ready(std::function<void()> wake);

 protected:
  /// An asynchronous sink calls it, from any thread, when receive() would return something.
  void wake() const;

 private:
  struct Bell;
  const std::unique_ptr<Bell> bell_;
};

/// Makes a sink from one blocking function. If the sink is gapless, nothing is delivered after a
/// failure until the relay has received that failure; it then calls open() before it sends again.
class BatchSink : public Sink {
 public:
  [[nodiscard]] std::size_t send(std::span<const Message> messages) final;
  void receive(std::vector<Outcome>& outcomes) final;
  void purge() final;

 protected:
  /// Delivers the messages in order and returns how many are durable at the destination. If these
  /// are not all, `failure` is the outcome of the next message, and the others were not tried.
  /// Messages behind a rejected one are passed to another call; for a gapless sink only if the
  /// rejected one is `unsent`.
  [[nodiscard]] virtual std::size_t deliver(std::span<const Message> batch, Outcome& failure) = 0;

 private:
  std::vector<Outcome> ready_;
  bool failed_{false};
};

}  // namespace outbox
