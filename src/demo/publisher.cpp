// A dual write, as it is often written: the application talks to its database and to the client of a broker, and the client
// has a buffer. Nothing here is made worse than it is in real programs: orders are handed over at once, the buffer holds
// them for some milliseconds, and when nobody takes them there is a log line and life goes on.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "demo/child.hpp"
#include "demo/courier.hpp"
#include "demo/destination.hpp"
#include "event/render.hpp"
#include "sink/registry.hpp"

namespace outbox::demo {
namespace {

using Clock = std::chrono::steady_clock;

/// What brokers' clients wait for more to send together.
constexpr std::chrono::milliseconds kLinger{5};
constexpr std::size_t kMostTogether = 1000;
constexpr std::chrono::seconds kLastOutcomes{15};
constexpr std::size_t kLongestOrder = 4096;

// ---- the shop's side

class PublisherCourier final : public Courier {
 public:
  explicit PublisherCourier(PublisherPlan plan) : plan_(std::move(plan)) {}
  ~PublisherCourier() override { hang_up(); }

  Status start() override {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return fail(Errc::internal, std::string("cannot make a socket: ") + std::strerror(errno));
    }
    auto child = Child::start({.program = plan_.program,
                               .arguments = {"outbox", "demo", "--publisher", plan_.destination},
                               .log = plan_.folder / "publisher.log",
                               .input = ends[1]});
    (void)close(ends[1]);
    if (!child) {
      (void)close(ends[0]);
      return pass(child);
    }
    child_ = std::move(*child);
    const std::unique_lock lock(mutex_);
    line_ = ends[0];
    return {};
  }

  Status check() override {
    if (!child_ || child_->running()) return {};
    return fail(Errc::internal, "the publisher ended by itself with " + child_->ended_with(),
                "see " + (plan_.folder / "publisher.log").string());
  }

  void kill() override {
    if (child_) child_->kill();
    hang_up();
  }

  Status finish(std::chrono::milliseconds limit) override {
    if (Status status = check(); !status) return status;
    hang_up();
    if (!child_ || child_->wait(limit)) return {};
    child_->kill();
    return fail(Errc::deadline_exceeded, "the publisher did not end in time");
  }

  bool publish(const Order& order) override {
    const std::string payload = to_event(order).payload;
    const std::shared_lock lock(mutex_);
    return line_ >= 0 && send(line_, payload.data(), payload.size(), MSG_NOSIGNAL) >= 0;
  }

 private:
  void hang_up() {
    const std::unique_lock lock(mutex_);
    if (line_ >= 0) (void)close(line_);
    line_ = -1;
  }

  const PublisherPlan plan_;
  std::optional<Child> child_;
  std::shared_mutex mutex_;
  int line_{-1};
};

// ---- the publisher's side

class Publisher {
 public:
  Publisher(std::unique_ptr<Sink> sink, event::Renderer renderer)
      : sink_(std::move(sink)), renderer_(std::move(renderer)) {}

  Status run(int input) {
    if (Status status = sink_->open(); !status) return status;
    while (take(input)) {
      if (!waiting_.empty() && (waiting_.size() >= kMostTogether || Clock::now() >= send_at_))
        send_all();
      take_outcomes();
    }
    send_all();
    const auto until = Clock::now() + kLastOutcomes;
    while (in_flight_ > 0 && Clock::now() < until) {
      (void)poll(nullptr, 0, 1);
      take_outcomes();
    }
    sink_->close();
    return {};
  }

 private:
  /// The next order, or none within the linger time. False: the shop has hung up.
  bool take(int input) {
    pollfd ready{.fd = input, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(kLinger.count())) <= 0) return true;
    std::array<char, kLongestOrder> order{};
    const ssize_t size = recv(input, order.data(), order.size(), 0);
    if (size < 0) return errno == EINTR || errno == EAGAIN;
    if (size == 0) return false;
    if (waiting_.empty()) send_at_ = Clock::now() + kLinger;
    waiting_.emplace_back(order.data(), static_cast<std::size_t>(size));
    return true;
  }

  void send_all() {
    std::vector<EventView> events;
    std::vector<std::string> keys;
    events.reserve(waiting_.size());
    keys.reserve(waiting_.size());
    for (const std::string& payload : waiting_) {
      const auto order = parse_order(payload);
      keys.push_back(order ? std::to_string(order->customer) : std::string());
      events.push_back({.id = EventId::generate(),
                        .aggregate_type = kAggregateType,
                        .aggregate_id = keys.back(),
                        .event_type = kEventType,
                        .payload = payload,
                        .content_type = "application/json",
                        .headers = "{}"});
    }
    event::RenderBuffer buffer;
    for (const EventView& event : events) renderer_.render(++token_, event, buffer);
    auto messages = buffer.messages();
    const auto until = Clock::now() + kLastOutcomes;
    while (!messages.empty() && Clock::now() < until) {
      const std::size_t taken = sink_->send(messages);
      in_flight_ += taken;
      messages = messages.subspan(taken);
      take_outcomes();
      if (taken == 0) (void)poll(nullptr, 0, 1);
    }
    waiting_.clear();
  }

  /// What failed is gone: that is what a log line instead of an outbox means.
  void take_outcomes() {
    outcomes_.clear();
    sink_->receive(outcomes_);
    in_flight_ -= std::min(in_flight_, outcomes_.size());
    for (const Outcome& outcome : outcomes_)
      failed_ = failed_ || outcome.kind != Outcome::Kind::acked;
    if (failed_ && in_flight_ == 0) failed_ = !sink_->open();
  }

  std::unique_ptr<Sink> sink_;
  event::Renderer renderer_;
  std::vector<std::string> waiting_;
  Clock::time_point send_at_{};
  std::vector<Outcome> outcomes_;
  Token token_{0};
  std::size_t in_flight_{0};
  bool failed_{false};
};

Result<std::unique_ptr<Destination>> destination_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string where = colon == std::string::npos ? std::string() : text.substr(colon + 1);
  if (kind == "file" && !where.empty()) return make_file_destination(where);
#ifdef OUTBOX_WITH_KAFKA
  const std::size_t at = where.find('@');
  if (kind == "kafka" && at != std::string::npos)
    return make_kafka_destination(where.substr(at + 1), where.substr(0, at));
#endif
  return fail(Errc::invalid_argument, "--publisher " + text + " is not understood",
              "this is what --naive starts");
}

}  // namespace

std::unique_ptr<Courier> make_publisher(PublisherPlan plan) {
  return std::make_unique<PublisherCourier>(std::move(plan));
}

Status run_publisher(const std::string& destination) {
  auto where = destination_of(destination);
  if (!where) return pass(where);
  const SubscriptionSpec spec = (*where)->subscription();
  auto sink = sink::make_sink(spec);
  if (!sink) return pass(sink);
  auto renderer = event::Renderer::create(spec);
  if (!renderer) return pass(renderer);
  return Publisher(std::move(*sink), std::move(*renderer)).run(STDIN_FILENO);
}

}  // namespace outbox::demo
