// A dual write, as it is often written: the application talks to its database and to the client of a broker, and the client
// has a buffer. Nothing here is made worse than it is in real programs: orders are handed over at once, and the buffer holds
// them for some milliseconds.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "demo/courier.hpp"
#include "demo/destination.hpp"
#include "testkit/failure.hpp"

namespace outbox::demo {
namespace {

using Clock = std::chrono::steady_clock;

/// How long clients of brokers collect messages for a batch.
constexpr std::chrono::milliseconds kLinger{5};
constexpr std::size_t kMostTogether = 1000;
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
      const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    return socket_ >= 0 && send(socket_, payload.data(), payload.size(), MSG_NOSIGNAL) >= 0;
  }

 private:
  void ask_to_stop() override { hang_up(); }

  void hang_up() {
    const MutexLock lock(mutex_);
    if (socket_ >= 0) (void)close(socket_);
    socket_ = -1;
  }

  const std::string destination_;
  Mutex mutex_;
  int socket_ OUTBOX_GUARDED_BY(mutex_){-1};
};

// ---- the publisher's side

/// Takes orders from the socket and sends them in batches, until the shop closes it.
void forward(int input, Sender& sender) {
  std::vector<Order> waiting;
  Clock::time_point send_at;
  for (bool open = true; open;) {
    pollfd ready{.fd = input, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(kLinger.count())) > 0) {
      std::array<char, kLongestOrder> text{};
      const ssize_t size = recv(input, text.data(), text.size(), 0);
      open = size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
      const auto order =
          size > 0 ? parse_order({text.data(), static_cast<std::size_t>(size)}) : std::nullopt;
      if (waiting.empty()) send_at = Clock::now() + kLinger;
      if (order) waiting.push_back(*order);
    }
    if (open && waiting.size() < kMostTogether && Clock::now() < send_at) continue;
    if (!waiting.empty()) sender.send(waiting);
    waiting.clear();
  }
  sender.finish();
}

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
    const auto where = destination_of(destination);
    forward(STDIN_FILENO, *where->sender());
    return {};
  } catch (const Exception& failure) {
    return fail(failure.error());
  }
}

}  // namespace outbox::demo
