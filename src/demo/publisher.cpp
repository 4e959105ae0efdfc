// A dual write, as it is often written: the application talks to its database and to the client of a broker, and the client
// has a buffer. Nothing here is made worse than it is in real programs: orders are handed over at once, the buffer holds
// them for some milliseconds, and when a send fails the order is dropped.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "demo/courier.hpp"
#include "demo/destination.hpp"
#include "event/render.hpp"
#include "sink/registry.hpp"
#include "testkit/failure.hpp"

namespace outbox::demo {
namespace {

using Clock = std::chrono::steady_clock;

/// How long brokers' clients wait for more to send together.
constexpr std::chrono::milliseconds kLinger{5};
constexpr std::size_t kMostTogether = 1000;
constexpr std::chrono::seconds kLastOutcomes{15};
constexpr std::size_t kLongestOrder = 4096;

// ---- the shop's side

class PublisherCourier final : public Courier {
 public:
  explicit PublisherCourier(const PublisherPlan& plan)
      : Courier("publisher", plan.program, plan.folder), destination_(plan.destination) {}
  PublisherCourier(const PublisherCourier&) = delete;
  PublisherCourier& operator=(const PublisherCourier&) = delete;
  ~PublisherCourier() override { hang_up(); }

  void start() override {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
      testkit::give_up(Errc::internal,
                       std::string("cannot make a socket: ") + std::strerror(errno));
    hang_up();
    {
      const std::unique_lock lock(mutex_);
      socket_ = ends[0];
    }
    const int child_end = ends[1];
    try {
      run({"demo", "--publisher", destination_}, child_end);
    } catch (...) {
      (void)close(child_end);
      throw;
    }
    (void)close(child_end);
  }

  void kill() override {
    Courier::kill();
    hang_up();
  }

  bool publish(const Order& order) override {
    const std::string payload = to_event(order).payload;
    const std::shared_lock lock(mutex_);
    return socket_ >= 0 && send(socket_, payload.data(), payload.size(), MSG_NOSIGNAL) >= 0;
  }

 private:
  void ask_to_end() override { hang_up(); }

  void hang_up() {
    const std::unique_lock lock(mutex_);
    if (socket_ >= 0) (void)close(socket_);
    socket_ = -1;
  }

  const std::string destination_;
  std::shared_mutex mutex_;
  int socket_{-1};
};

// ---- the publisher's side

class Publisher {
 public:
  Publisher(std::unique_ptr<Sink> sink, event::Renderer renderer)
      : sink_(std::move(sink)), renderer_(std::move(renderer)) {}

  void run(int input) {
    testkit::must(sink_->open());
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
  }

 private:
  /// The next order, or none within the linger time. False: the shop has closed the socket.
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
    std::vector<std::string> keys(waiting_.size());
    std::vector<EventView> events;
    events.reserve(waiting_.size());
    event::RenderBuffer buffer;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (const auto order = parse_order(waiting_[i])) keys[i] = std::to_string(order->customer);
      events.push_back({.id = EventId::generate(),
                        .aggregate_type = kAggregateType,
                        .aggregate_id = keys[i],
                        .event_type = kEventType,
                        .payload = waiting_[i],
                        .content_type = "application/json",
                        .headers = "{}"});
      renderer_.render(++token_, events.back(), buffer);
    }
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

  /// What failed is lost: an outbox would send it again.
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

std::unique_ptr<Destination> destination_of(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string kind = text.substr(0, colon);
  const std::string where = text.substr(std::min(colon + 1, text.size()));
  if (kind == "file" && !where.empty()) return make_file_destination(where);
#ifdef OUTBOX_WITH_KAFKA
  const std::size_t at = where.find('@');
  if (kind == "kafka" && at != std::string::npos)
    return make_kafka_destination(where.substr(at + 1), where.substr(0, at));
#endif
  testkit::give_up(Errc::invalid_argument, "--publisher " + text + " is not understood",
                   "this is what --naive starts");
}

}  // namespace

std::unique_ptr<Courier> make_publisher(const PublisherPlan& plan) {
  return std::make_unique<PublisherCourier>(plan);
}

Status run_publisher(const std::string& destination) {
  try {
    const SubscriptionSpec spec = destination_of(destination)->subscription();
    Publisher(testkit::must(sink::make_sink(spec)), testkit::must(event::Renderer::create(spec)))
        .run(STDIN_FILENO);
    return {};
  } catch (const Exception& failure) {
    return fail(failure.error());
  }
}

}  // namespace outbox::demo
