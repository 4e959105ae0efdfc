#include "sink/nats/connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/thread.hpp"
#include "sink/nats/reach.hpp"

namespace outbox::sink::nats {
namespace {

/// A thread that is left behind in the client's handshake goes on when the server answers, perhaps
/// while the process exits. It must still find what OpenSSL frees in an exit handler. The first
/// user of OpenSSL in a process decides about that handler, so this runs before main().
[[maybe_unused]] const int kKeepsOpenssl = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

/// The number of a message that ask() publishes.
constexpr Number kAsked = 0;
/// The client gets no more messages while it has this many unwritten bytes.
constexpr int kMostBuffered = 256 * 1024;
constexpr std::chrono::milliseconds kEndLimit{500};

/// Makes the kernel notice a peer that is gone, either by not taking bytes or by silence.
void watch_peer(int socket, std::chrono::milliseconds deadline) {
  const auto set = [socket](int level, int option, int value) {
    (void)::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(deadline.count()));
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
}

}  // namespace

std::string make_inbox(const std::string& prefix) {
  natsInbox* made = nullptr;
  OUTBOX_CHECK(natsInbox_Create(&made) == NATS_OK);
  const std::string name(made);
  natsInbox_Destroy(made);
  return prefix + name.substr(name.find('.')) + ".";
}

std::string_view last_words(natsStatus status) {
  natsStatus last = NATS_OK;
  const char* const text = nats_GetLastError(&last);
  return last == status && text != nullptr ? client_words(text) : std::string_view();
}

Error describe_loss(natsConnection* client, const std::string& server) {
  const char* text = nullptr;
  natsStatus status = natsConnection_GetLastError(client, &text);
  std::string_view words = status == NATS_OK || text == nullptr ? "" : text;
  // The client keeps the text of an earlier error that had nothing to do with the end.
  if (words.starts_with("Permissions Violation")) words = {};
  if (status == NATS_OK) status = NATS_CONNECTION_CLOSED;
  return describe(status, server + ": the connection is lost", words);
}

std::optional<Number> parse_number(std::string_view subject, std::string_view inbox) {
  if (!subject.starts_with(inbox)) return std::nullopt;
  Number number = 0;
  const char* const end = subject.data() + subject.size();
  const auto [stop, wrong] = std::from_chars(subject.data() + inbox.size(), end, number);
  return wrong == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

Error too_many_left(std::size_t count) {
  return fail(Errc::unavailable, Remedy::reconnect,
              fmt::format("nats: {} earlier attempts to connect still wait for an answer", count),
              "the server accepts connections and then hangs: restart it")
      .value();
}

// ---- the relay's thread

Result<std::shared_ptr<Connection>> Connection::start(const NatsSettings& settings,
                                                      const Endpoint& server,
                                                      std::chrono::nanoseconds limit,
                                                      std::function<void()> wake) {
  if (const natsStatus opened = nats_Open(-1); opened != NATS_OK)
    return fail(describe(opened, "the client cannot be started", last_words(opened)));
  OUTBOX_TRY(EventFd event, EventFd::create());
  std::shared_ptr<Connection> made(
      new Connection(settings, server, std::move(event), std::move(wake)));
  try {
    const TimePoint until = std::chrono::steady_clock::now() + limit;
    start_thread("ob-nats", [made, until](const std::stop_token&) { made->run(until); }).detach();
  } catch (const std::system_error& error) {
    return fail(Errc::unavailable, Remedy::retry_call,
                std::string("nats: cannot start a thread: ") + error.what(),
                "raise the limit of threads of the relay");
  }
  return made;
}

Connection::Connection(const NatsSettings& settings, Endpoint server, EventFd event,
                       std::function<void()> wake)
    : settings_(settings),
      server_(std::move(server)),
      inbox_(make_inbox(settings.inbox_prefix)),
      event_(std::move(event)),
      wake_(std::move(wake)) {}

Connection::~Connection() = default;

Status Connection::wait_until_up(TimePoint until) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, until,
                      [this]() OUTBOX_REQUIRES(mutex_) { return state_ != State::connecting; });
  if (news_.lost) return fail(*news_.lost);
  if (state_ == State::up) return {};
  return fail(Errc::deadline_exceeded, Remedy::reconnect,
              fmt::format("nats: {}: does not complete the connection in time", server_.shown()),
              "check the server; with TLS, that it speaks TLS");
}

std::string Connection::reply_to(Number number) const { return inbox_ + std::to_string(number); }

void Connection::publish(std::vector<Outgoing> messages) {
  {
    const MutexLock lock(mutex_);
    for (Outgoing& one : messages) queue_.push_back(std::move(one));
  }
  event_.signal();
}

News Connection::take() {
  const MutexLock lock(mutex_);
  return take_locked();
}

News Connection::take_locked() {
  // The messages came while the thread ended.
  if (state_ == State::ended) {
    for (const Outgoing& one : std::exchange(queue_, {})) news_.unsent.push_back(one.number);
  }
  return std::exchange(news_, {});
}

Result<Reply> Connection::ask(const std::string& subject, TimePoint until) {
  natsMsg* made = nullptr;
  const natsStatus status =
      natsMsg_Create(&made, subject.c_str(), reply_to(kAsked).c_str(), nullptr, 0);
  if (status != NATS_OK) return fail(describe(status, "cannot make a message", {}));
  std::vector<Outgoing> question;
  question.push_back({.number = kAsked, .message = MessageHandle(made)});
  publish(std::move(question));

  const MutexLock lock(mutex_);
  std::optional<Result<Reply>> answer;
  changed_.wait_until(mutex_, until, [&]() OUTBOX_REQUIRES(mutex_) {
    answer = answer_to(subject);
    return answer.has_value();
  });
  if (answer) return *answer;
  return fail(Errc::deadline_exceeded, Remedy::reconnect,
              fmt::format("nats: {}: no answer on {}", server_.shown(), subject),
              "check that the stream has a leader");
}

std::optional<Result<Reply>> Connection::answer_to(const std::string& subject) {
  if (news_.lost) return fail(*news_.lost);
  if (reply_) return *std::exchange(reply_, std::nullopt);
  for (const std::string& words : std::exchange(news_.denied, {})) {
    const auto denied = parse_denied(words);
    // Without its inbox the connection gets no answers at all.
    if (!denied) return fail(describe(NATS_NOT_PERMITTED, server_.shown(), words));
    if (denied->means(subject)) return Reply{.kind = Reply::Kind::denied};
  }
  return std::nullopt;
}

News Connection::give_up() {
  {
    const MutexLock lock(wake_mutex_);
    wake_ = nullptr;
  }
  const MutexLock lock(mutex_);
  stopping_ = true;
  // Buffered bytes can no longer be written, and whoever waits for the socket wakes up.
  if (socket_ >= 0) (void)::shutdown(socket_, SHUT_RDWR);
  event_.signal();
  if (state_ == State::up) {
    changed_.wait_for(mutex_, kEndLimit,
                      [this]() OUTBOX_REQUIRES(mutex_) { return state_ == State::ended; });
  }
  News news = take_locked();
  for (const Outgoing& one : std::exchange(queue_, {})) news.unsent.push_back(one.number);
  return news;
}

// ---- the thread

void Connection::run(TimePoint until) {
  Status done = connect(until);
  if (done) {
    serve();
    done = fail(failure_ ? *failure_ : describe_loss(client_.get(), server_.shown()));
  }
  close_client();
  end(std::move(done.error()));
}

std::int64_t Connection::max_payload() {
  const MutexLock lock(mutex_);
  return max_payload_;
}

Status Connection::connect(TimePoint until) {
  OUTBOX_TRY(const std::string address, reach(server_, until));
  OUTBOX_TRY(OptionsHandle options, make_options(settings_, server_, address));
  OUTBOX_TRY(connect_client(std::move(options)));
  OUTBOX_TRY(subscribe());
  {
    const MutexLock lock(mutex_);
    if (stopping_) return fail(Errc::cancelled, "nats: not needed any more");
    state_ = State::up;
    max_payload_ = natsConnection_GetMaxPayload(client_.get());
  }
  changed_.notify_all();
  return {};
}

Status Connection::connect_client(OptionsHandle options) {
  // The client calls failed() on a thread of its own, perhaps after the client was destroyed here,
  // and then closed() as the last call.
  auto held = std::make_unique<std::shared_ptr<Connection>>(shared_from_this());
  natsOptions_SetEventLoop(options.get(), this, attach, read_wanted, write_wanted, detach);
  natsOptions_SetErrorHandler(options.get(), failed, held.get());
  natsOptions_SetClosedCB(options.get(), closed, held.get());
  natsConnection* made = nullptr;
  const natsStatus status = natsConnection_Connect(&made, options.get());
  if (status != NATS_OK) return fail(describe(status, server_.shown(), last_words(status)));
  (void)held.release();
  client_.reset(made);
  return {};
}

Status Connection::subscribe() {
  if (natsConnection_HasHeaderSupport(client_.get()) != NATS_OK)
    return fail(describe(NATS_NO_SERVER_SUPPORT, server_.shown(), "the server has no headers"));
  // A synchronous subscription says that nobody listened, but not for which message. The number of
  // answers needs no limit: there is one for each message in flight.
  const natsStatus status =
      listen(client_.get(), inbox_, answered, shared_from_this(), subscription_);
  if (status == NATS_OK) return {};
  return fail(describe(status, server_.shown(), last_words(status)));
}

void Connection::serve() {
  while (is_connected() && !failure_) {
    wait();
    if (stopping()) return;
    if (readable_) natsConnection_ProcessReadEvent(client_.get());
    if (writable_ && is_connected()) natsConnection_ProcessWriteEvent(client_.get());
    hand_over();
  }
}

void Connection::wait() {
  const short events = static_cast<short>(wants_write_ ? POLLIN | POLLOUT : POLLIN);
  pollfd polled[] = {{.fd = polled_, .events = events, .revents = 0},
                     {.fd = event_.fd(), .events = POLLIN, .revents = 0}};
  readable_ = writable_ = false;
  if (::poll(polled, 2, -1) < 0) return;
  readable_ = (polled[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  writable_ = (polled[0].revents & POLLOUT) != 0;
  if (polled[1].revents != 0) (void)event_.clear();
}

void Connection::hand_over() {
  while (natsConnection_Buffered(client_.get()) < kMostBuffered) {
    if (waiting_.empty()) take_queue();
    if (waiting_.empty() || !hand_over(waiting_.front())) return;
    waiting_.pop_front();
  }
}

void Connection::take_queue() {
  const MutexLock lock(mutex_);
  for (Outgoing& one : queue_) waiting_.push_back(std::move(one));
  queue_.clear();
}

/// Returns false if the connection cannot be used any more.
bool Connection::hand_over(const Outgoing& outgoing) {
  const natsStatus status = natsConnection_PublishMsg(client_.get(), outgoing.message.get());
  if (status == NATS_OK) return true;
  if (status == NATS_CONNECTION_CLOSED) return false;
  const std::string subject = natsMsg_GetSubject(outgoing.message.get());
  Error error = describe(status, "subject " + subject, last_words(status));
  if (status == NATS_MAX_PAYLOAD || status == NATS_INVALID_SUBJECT) {
    {
      const MutexLock lock(mutex_);
      news_.refused.emplace_back(outgoing.number, std::move(error));
    }
    ring();
    return true;
  }
  // A part of the message may be in the client's buffer, so nothing can follow it.
  failure_ = std::move(error);
  return false;
}

/// Lets the client end with its socket: destroying it while connected would send what is buffered.
void Connection::close_client() {
  if (!client_) return;
  (void)::shutdown(polled_, SHUT_RDWR);
  while (is_connected()) natsConnection_ProcessReadEvent(client_.get());
  subscription_.reset();
  client_.reset();
}

void Connection::end(std::optional<Error> reason) {
  {
    const MutexLock lock(mutex_);
    state_ = State::ended;
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    for (const Outgoing& one : waiting_) news_.unsent.push_back(one.number);
    news_.lost = std::move(reason);
  }
  waiting_.clear();
  changed_.notify_all();
  ring();
}

bool Connection::is_connected() const {
  return natsConnection_Status(client_.get()) == NATS_CONN_STATUS_CONNECTED;
}

bool Connection::stopping() {
  const MutexLock lock(mutex_);
  return stopping_;
}

void Connection::take_answer(natsMsg* message) {
  const auto number = parse_number(natsMsg_GetSubject(message), inbox_);
  if (!number) return;
  const bool nobody = natsMsg_IsNoResponders(message);
  const std::string_view body(natsMsg_GetData(message),
                              static_cast<std::size_t>(natsMsg_GetDataLength(message)));
  if (*number == kAsked) {
    const MutexLock lock(mutex_);
    reply_ = Reply{.kind = nobody ? Reply::Kind::nobody : Reply::Kind::answered,
                   .body = std::string(body)};
    changed_.notify_all();
    return;
  }
  Answer answer = nobody ? Answer{.kind = Answer::Kind::nobody, .code = 503} : parse_answer(body);
  bool first = false;
  {
    const MutexLock lock(mutex_);
    first = news_.answers.empty();
    news_.answers.emplace_back(*number, std::move(answer));
  }
  if (first) ring();
}

void Connection::ring() {
  const MutexLock lock(wake_mutex_);
  if (wake_) wake_();
}

// ---- called by cnats

natsStatus Connection::attach(void** self, void* loop, natsConnection* /*client*/,
                              natsSock socket) {
  auto* const connection = static_cast<Connection*>(loop);
  const int copy = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return NATS_SYS_ERROR;
  watch_peer(copy, connection->settings_.deadline);
  connection->polled_ = copy;
  *self = connection;
  const MutexLock lock(connection->mutex_);
  connection->socket_ = copy;
  return NATS_OK;
}

natsStatus Connection::read_wanted(void* /*self*/, bool /*add*/) { return NATS_OK; }

natsStatus Connection::write_wanted(void* self, bool add) {
  static_cast<Connection*>(self)->wants_write_ = add;
  return NATS_OK;
}

natsStatus Connection::detach(void* /*self*/) { return NATS_OK; }

void Connection::failed(natsConnection* /*client*/, natsSubscription* /*subscription*/,
                        natsStatus status, void* held) {
  if (status != NATS_NOT_PERMITTED) return;
  const auto& self = *static_cast<std::shared_ptr<Connection>*>(held);
  {
    const MutexLock lock(self->mutex_);
    self->news_.denied.emplace_back(last_words(status));
  }
  self->changed_.notify_all();
  self->ring();
}

void Connection::closed(natsConnection* /*client*/, void* held) {
  delete static_cast<std::shared_ptr<Connection>*>(held);
}

void Connection::answered(natsConnection* /*client*/, natsSubscription* /*subscription*/,
                          natsMsg* message, void* held) {
  (*static_cast<std::shared_ptr<Connection>*>(held))->take_answer(message);
  natsMsg_Destroy(message);
}

}  // namespace outbox::sink::nats
