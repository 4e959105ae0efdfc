#include "http/server.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"
#include "http/connection.hpp"
#include "http/router.hpp"

namespace outbox::http {
namespace {

using TimePoint = Connection::TimePoint;

/// After a connection could not be accepted, the next one is accepted no earlier than this.
constexpr std::chrono::milliseconds kAcceptAgain{100};

tl::unexpected<Error> cannot_listen(const Address& address, int error) {
  std::string hint;
  if (error == EADDRINUSE)
    hint = "another process listens there; choose another port, or end that process";
  if (error == EACCES) hint = "ports below 1024 need a right; choose a higher one";
  if (error == EADDRNOTAVAIL) hint = "this machine does not have that address";
  return fail(Errc::unavailable, Remedy::fix,
              "cannot listen at " + address.text() + ": " + std::system_category().message(error),
              std::move(hint));
}

struct Free {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

Result<std::unique_ptr<addrinfo, Free>> resolve(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  // "localhost" has an address in both families, and only one is listened on.
  if (address.host == "localhost") hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0)
    return fail(Errc::unavailable,
                "cannot listen at " + address.text() + ": " + gai_strerror(failed));
  return std::unique_ptr<addrinfo, Free>(found);
}

Result<Socket> listen_at(const Address& address) {
  OUTBOX_TRY(const auto found, resolve(address));
  Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket.fd() < 0 || ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.fd(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.fd(), SOMAXCONN) != 0)
    return cannot_listen(address, errno);
  return socket;
}

int read_port(const sockaddr_storage& name) {
  if (name.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(name).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

std::string read_ip(const sockaddr_storage& name) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const from =
      name.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(name).sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(name).sin_addr);
  const char* const written = inet_ntop(name.ss_family, from, text.data(), text.size());
  return written == nullptr ? "" : written;
}

}  // namespace

class Server::Impl {
 public:
  Impl(Socket listener, Address address, const ServerOptions& options,
       std::optional<TlsContext> tls, const std::function<void(httplib::Server&)>& add_routes,
       EventFd wake)
      : options_(options),
        tls_(std::move(tls)),
        address_(std::move(address)),
        listener_(std::move(listener)),
        router_(add_routes),
        wake_(std::move(wake)) {
    for (std::size_t i = 0; i < options_.threads; ++i)
      workers_.push_back(
          start_thread("ob-http-work", [this](const std::stop_token& stop) { work(stop); }));
    loop_ = start_thread("ob-http", [this](const std::stop_token& stop) { run(stop); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() {
    loop_.request_stop();
    wake_.signal();
    loop_.join();
  }

  [[nodiscard]] const Address& address() const { return address_; }

 private:
  using Id = std::uint64_t;
  struct Job {
    Id id{0};
    std::string request;
    std::string peer;
  };
  struct Answer {
    Id id{0};
    Response response;
  };

  // ---- the thread of the connections

  void run(const std::stop_token& stop) {
    // OpenSSL writes without MSG_NOSIGNAL: a client that is gone must not end the process.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    while (!stop.stop_requested()) {
      wait();
      if (wake_.clear()) take_answers();
      const TimePoint now = now_steady();
      for (const auto& [id, events] : ready_) serve(id, events, now);
      if (listener_ready_) accept_all(now);
      close_late(now);
      close_largest();
    }
    connections_.clear();
  }

  void wait() {
    polled_.clear();
    ids_.clear();
    polled_.push_back({.fd = wake_.fd(), .events = POLLIN, .revents = 0});
    const bool accepts = now_steady() >= accept_after_;
    polled_.push_back({.fd = accepts ? listener_.fd() : -1, .events = POLLIN, .revents = 0});
    TimePoint until = accepts ? now_steady() + std::chrono::hours(1) : accept_after_;
    for (const auto& [id, connection] : connections_) {
      until = std::min(until, connection.by);
      polled_.push_back(
          {.fd = connection.socket.fd(), .events = waited_events(connection), .revents = 0});
      ids_.push_back(id);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now_steady()).count();
    ready_.clear();
    listener_ready_ = false;
    if (::poll(polled_.data(), polled_.size(), static_cast<int>(std::max<long>(left, 0))) <= 0)
      return;
    listener_ready_ = polled_[1].revents != 0;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (polled_[i + 2].revents != 0) ready_.emplace_back(ids_[i], polled_[i + 2].revents);
    }
  }

  [[nodiscard]] static short waited_events(const Connection& connection) {
    // While a handler runs nothing is read: what the client sends meanwhile waits in the kernel.
    if (connection.state == Connection::State::answering) return 0;
    if (connection.tls_waits == Moved::Next::when_readable) return POLLIN;
    if (connection.tls_waits == Moved::Next::when_writable) return POLLOUT;
    return connection.state == Connection::State::writing ? POLLOUT : POLLIN;
  }

  void accept_all(TimePoint now) {
    while (true) {
      sockaddr_storage name{};
      socklen_t size = sizeof name;
      Socket socket(::accept4(listener_.fd(), reinterpret_cast<sockaddr*>(&name), &size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.fd() < 0) {
        // Without a free descriptor the connection waits in the kernel, and poll() would return at
        // once again and again.
        if (errno != EAGAIN && errno != EINTR) accept_after_ = now + kAcceptAgain;
        return;
      }
      if (connections_.size() >= options_.connections) {
        if (!tls_) {
          const std::string sorry = refusal(503);
          (void)::send(socket.fd(), sorry.data(), sorry.size(), MSG_NOSIGNAL);
        }
        continue;
      }
      const int on = 1;
      (void)::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      auto tls = tls_ ? tls_->accept(socket.fd()) : nullptr;
      if (tls_ && tls == nullptr) continue;
      Connection& added = connections_
                              .try_emplace(++last_id_, std::move(socket), read_ip(name),
                                           options_.request, now + options_.idle)
                              .first->second;
      added.tls = std::move(tls);
    }
  }

  void serve(Id id, short events, TimePoint now) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    const bool lives = connection.state == Connection::State::answering
                           ? (events & (POLLHUP | POLLERR)) == 0
                       : connection.state == Connection::State::writing ? write(connection)
                                                                        : read(connection);
    if (!lives) {
      connections_.erase(found);
      return;
    }
    go_on(id, connection, now);
  }

  /// False: the client is gone.
  [[nodiscard]] static bool read(Connection& connection) {
    std::array<char, 16384>
        bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv() fills it
    if (connection.tls != nullptr) {
      const Moved moved = connection.tls->read(bytes);
      connection.tls_waits = moved.next;
      connection.reader.feed({bytes.data(), moved.bytes});
      return moved.next != Moved::Next::gone;
    }
    const ssize_t count = ::recv(connection.socket.fd(), bytes.data(), bytes.size(), 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    connection.reader.feed({bytes.data(), static_cast<std::size_t>(count)});
    return true;
  }

  [[nodiscard]] static bool write(Connection& connection) {
    const std::string& out = connection.out;
    if (connection.tls != nullptr) {
      const Moved moved = connection.tls->write(std::string_view(out).substr(connection.written));
      connection.tls_waits = moved.next;
      connection.written += moved.bytes;
      return moved.next != Moved::Next::gone;
    }
    const ssize_t count = ::send(connection.socket.fd(), out.data() + connection.written,
                                 out.size() - connection.written, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.written += static_cast<std::size_t>(count);
    return true;
  }

  /// Follows from what the connection has read or written.
  void go_on(Id id, Connection& connection, TimePoint now) {
    if (connection.state == Connection::State::writing &&
        connection.written == connection.out.size()) {
      if (connection.closes) {
        connections_.erase(id);
        return;
      }
      connection.state = Connection::State::reading;
      connection.out.clear();
      connection.by = now + options_.idle;
      connection.request_begun = false;
    }
    if (connection.state == Connection::State::reading) read_on(id, connection, now);
  }

  void read_on(Id id, Connection& connection, TimePoint now) {
    const int status = connection.reader.status();
    if (status == 200) {
      connection.state = Connection::State::answering;
      connection.tls_waits = Moved::Next::again;
      connection.by = TimePoint::max();  // A handler always returns.
      give({.id = id, .request = connection.reader.take(), .peer = connection.peer});
    } else if (status != 0) {
      answer(connection, {.bytes = refusal(status), .closes = true}, now);
    } else if (connection.reader.has_begun() && !std::exchange(connection.request_begun, true)) {
      connection.by = now + options_.exchange;
    }
  }

  void answer(Connection& connection, Response response, TimePoint now) {
    connection.state = Connection::State::writing;
    connection.out = std::move(response.bytes);
    connection.written = 0;
    connection.closes = response.closes;
    connection.by = now + options_.exchange;
  }

  void take_answers() {
    std::vector<Answer> answers;
    {
      const MutexLock lock(mutex_);
      answers.swap(answers_);
    }
    for (Answer& one : answers) {
      const auto found = connections_.find(one.id);
      if (found == connections_.end()) continue;
      answer(found->second, std::move(one.response), now_steady());
      ready_.emplace_back(one.id, POLLOUT);
    }
  }

  void close_late(TimePoint now) {
    std::erase_if(connections_, [&](auto& entry) {
      const Connection& connection = entry.second;
      if (now < connection.by) return false;
      const bool late_request =
          connection.state == Connection::State::reading && connection.reader.has_begun();
      if (late_request && connection.tls == nullptr) {
        const std::string late = refusal(408);
        (void)::send(connection.socket.fd(), late.data(), late.size(), MSG_NOSIGNAL);
      }
      return true;
    });
  }

  void close_largest() {
    while (true) {
      std::size_t all = 0;
      auto largest = connections_.end();
      for (auto at = connections_.begin(); at != connections_.end(); ++at) {
        all += at->second.buffered();
        if (largest == connections_.end() || at->second.buffered() > largest->second.buffered())
          largest = at;
      }
      if (all <= options_.buffered_bytes || largest == connections_.end()) return;
      log::warn("an HTTP connection is closed: too many bytes wait to be sent",
                {{"peer", largest->second.peer}, {"bytes", largest->second.buffered()}});
      connections_.erase(largest);
    }
  }

  // ---- the threads of the handlers

  void give(Job job) {
    {
      const MutexLock lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

  void work(const std::stop_token& stop) {
    while (const auto job = next(stop)) {
      Answer answer{.id = job->id, .response = router_.answer(job->request, job->peer)};
      {
        const MutexLock lock(mutex_);
        answers_.push_back(std::move(answer));
      }
      wake_.signal();
    }
  }

  std::optional<Job> next(const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    const bool found =
        changed_.wait(mutex_, stop, [this]() OUTBOX_REQUIRES(mutex_) { return !jobs_.empty(); });
    if (!found || stop.stop_requested()) return {};
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

  const ServerOptions options_;
  const std::optional<TlsContext> tls_;
  const Address address_;
  const Socket listener_;
  Router router_;
  const EventFd wake_;

  // The thread of the connections only.
  std::map<Id, Connection> connections_;
  Id last_id_{0};
  std::vector<pollfd> polled_;
  std::vector<Id> ids_;  ///< Of polled_, behind the first two.
  std::vector<std::pair<Id, short>> ready_;
  bool listener_ready_{false};
  TimePoint accept_after_{};

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job> jobs_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<Answer> answers_ OUTBOX_GUARDED_BY(mutex_);

  std::vector<std::jthread> workers_;
  std::jthread loop_;
};

Result<std::unique_ptr<Server>> Server::start(
    const Address& address, const ServerOptions& options,
    const std::function<void(httplib::Server& server)>& add_routes) {
  std::optional<TlsContext> tls;
  if (options.certificate) {
    OUTBOX_TRY(tls, TlsContext::open(*options.certificate));
  }
  OUTBOX_TRY(Socket listener, listen_at(address));
  OUTBOX_TRY(EventFd wake, EventFd::create());
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return cannot_listen(address, errno);
  return std::unique_ptr<Server>(new Server(std::make_unique<Impl>(
      std::move(listener), Address{.host = address.host, .port = read_port(name)}, options,
      std::move(tls), add_routes, std::move(wake))));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

const Address& Server::address() const { return impl_->address(); }

}  // namespace outbox::http
