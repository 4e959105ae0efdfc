// One connection to a server, which is never repaired: when it is lost, another one is made.
//
// All of the client's input and output is on a thread of its own, which cnats calls an event loop
// (natsOptions_SetEventLoop). Otherwise a peer that does not read would make the relay's thread
// wait for the client's lock, closing the client would send what it buffered, and its socket would
// be out of reach; here it can be shut down at any time. The thread connects first. cnats cannot be
// interrupted meanwhile (reach.hpp), so a thread that hangs there is left behind and ends when the
// server answers or closes.
//
// Threads: One thread at a time. The callbacks of cnats run on other threads.
// Lifetime: the object's thread keeps it alive. It does not call `wake` after give_up().
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "sink/endpoint.hpp"
#include "sink/nats/config.hpp"
#include "sink/nats/error_map.hpp"
#include "sink/nats/handle.hpp"

namespace outbox::sink::nats {

/// The number of a message, chosen by its publisher, from 1.
using Number = std::uint64_t;

struct Outgoing {
  Number number{0};
  MessageHandle message;
};

/// What happened since the last call.
struct News {
  std::vector<std::pair<Number, Answer>> answers{};
  /// Messages that the client refused because of their own fault.
  std::vector<std::pair<Number, Error>> refused{};
  /// Messages of which nothing reached the client.
  std::vector<Number> unsent{};
  /// The server's texts about messages that may not be published.
  std::vector<std::string> denied{};
  /// Why there will be no more answers.
  std::optional<Error> lost{};
};

/// The result of a question to JetStream.
struct Reply {
  enum class Kind : std::uint8_t {
    answered,
    nobody,  ///< Nothing listens on the subject.
    denied,  ///< The user may not ask this.
  };
  Kind kind{Kind::answered};
  std::string body{};
};

/// What subjects for answers begin with that nobody else has: "_INBOX.xxxxxxxxxxxxxxxxxxxxxx.".
[[nodiscard]] std::string make_inbox(const std::string& prefix);
/// The number at the end of a subject for answers; nullopt for other subjects.
[[nodiscard]] std::optional<Number> parse_number(std::string_view subject, std::string_view inbox);

/// What the client says of the call that has just failed with this status on this thread.
[[nodiscard]] std::string_view last_words(natsStatus status);
/// Why the connection was lost.
[[nodiscard]] Error describe_loss(natsConnection* client, const std::string& server);

/// Subscribes to the answers. `arrived` gets a pointer to `held`, which lives until its last call.
template <class Held>
natsStatus listen(natsConnection* client, const std::string& inbox, natsMsgHandler arrived,
                  std::shared_ptr<Held> held, SubscriptionHandle& into) {
  using Pointer = std::shared_ptr<Held>;
  auto kept = std::make_unique<Pointer>(std::move(held));
  natsSubscription* made = nullptr;
  natsStatus status =
      natsConnection_Subscribe(&made, client, (inbox + "*").c_str(), arrived, kept.get());
  into.reset(made);
  const auto unsubscribed = [](void* last) { delete static_cast<Pointer*>(last); };
  if (status == NATS_OK)
    status = natsSubscription_SetOnCompleteCB(made, unsubscribed, kept.release());
  return status == NATS_OK ? natsSubscription_SetPendingLimits(made, -1, -1) : status;
}

/// The most hanging attempts to connect that are left behind, because the client cannot be
/// interrupted. They end when the server does, or its kernel.
inline constexpr std::size_t kMostLeft = 16;
[[nodiscard]] Error too_many_left(std::size_t count);

/// Forgets the attempts that have ended. Fails if too many are left.
template <class Attempt>
[[nodiscard]] Status check_left(std::vector<std::weak_ptr<Attempt>>& left) {
  std::erase_if(left, [](const auto& one) { return one.expired(); });
  if (left.size() < kMostLeft) return {};
  return tl::unexpected(too_many_left(left.size()));
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Starts to connect, for at most `limit`.
  [[nodiscard]] static Result<std::shared_ptr<Connection>> start(const NatsSettings& settings,
                                                                 const Endpoint& server,
                                                                 std::chrono::nanoseconds limit,
                                                                 std::function<void()> wake);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection(Connection&&) = delete;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  [[nodiscard]] Status wait_until_up(TimePoint until);
  /// The subject for the answer to this message.
  [[nodiscard]] std::string reply_to(Number number) const;
  /// Publishes the messages in their order. Returns at once.
  void publish(std::vector<Outgoing> messages);
  [[nodiscard]] News take();
  /// The largest message that the server takes, in bytes; 0 if not known yet.
  [[nodiscard]] std::int64_t max_payload();
  [[nodiscard]] Result<Reply> ask(const std::string& subject, TimePoint until);
  /// Ends sending. Waits for the thread for at most half a second.
  [[nodiscard]] News give_up();

 private:
  enum class State : std::uint8_t { connecting, up, ended };

  Connection(const NatsSettings& settings, Endpoint server, EventFd event,
             std::function<void()> wake);

  // Called on the thread.
  void run(TimePoint until);
  [[nodiscard]] Status connect(TimePoint until);
  [[nodiscard]] Status connect_client(OptionsHandle options);
  [[nodiscard]] Status subscribe();
  void serve();
  void wait();
  void hand_over();
  void take_queue();
  [[nodiscard]] bool hand_over(const Outgoing& outgoing);
  void close_client();
  void end(std::optional<Error> reason);
  [[nodiscard]] bool is_connected() const;
  void ring();

  /// Called on the thread on which cnats delivers answers.
  void take_answer(natsMsg* message);

  // Called by cnats, the first four on the thread. `held`, a shared_ptr, lives until the last call.
  static natsStatus attach(void** self, void* loop, natsConnection* client, natsSock socket);
  static natsStatus read_wanted(void* self, bool add);
  static natsStatus write_wanted(void* self, bool add);
  static natsStatus detach(void* self);
  static void failed(natsConnection* client, natsSubscription* subscription, natsStatus status,
                     void* held);
  static void closed(natsConnection* client, void* held);
  static void answered(natsConnection* client, natsSubscription* subscription, natsMsg* message,
                       void* held);

  [[nodiscard]] bool stopping();
  [[nodiscard]] News take_locked() OUTBOX_REQUIRES(mutex_);
  /// The answer to a question on this subject, if it has come.
  [[nodiscard]] std::optional<Result<Reply>> answer_to(const std::string& subject)
      OUTBOX_REQUIRES(mutex_);

  const NatsSettings settings_;
  const Endpoint server_;
  const std::string inbox_;
  const EventFd event_;  ///< Wakes the thread.

  Mutex wake_mutex_;
  std::function<void()> wake_ OUTBOX_GUARDED_BY(wake_mutex_);

  Mutex mutex_;
  std::condition_variable_any changed_;
  State state_ OUTBOX_GUARDED_BY(mutex_){State::connecting};
  bool stopping_ OUTBOX_GUARDED_BY(mutex_){false};
  /// A second descriptor of the client's socket: the first one's number may belong to another file
  /// once the client closed it.
  int socket_ OUTBOX_GUARDED_BY(mutex_){-1};
  std::int64_t max_payload_ OUTBOX_GUARDED_BY(mutex_){0};
  std::vector<Outgoing> queue_ OUTBOX_GUARDED_BY(mutex_);
  News news_ OUTBOX_GUARDED_BY(mutex_);
  std::optional<Reply> reply_ OUTBOX_GUARDED_BY(mutex_);

  // Used by the thread only.
  ConnectionHandle client_;
  SubscriptionHandle subscription_;
  std::deque<Outgoing> waiting_;
  int polled_{-1};  ///< The value of socket_.
  bool wants_write_{false};
  bool readable_{false};
  bool writable_{false};
  std::optional<Error> failure_;  ///< Why the client could not take a whole message.
};

}  // namespace outbox::sink::nats
