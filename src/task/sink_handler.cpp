#include "task/sink_handler.hpp"

#include <chrono>
#include <condition_variable>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "event/task.hpp"
#include "format/render.hpp"
#include "sink/answers.hpp"
#include "sink/registry.hpp"

namespace outbox::task {
namespace {

/// How often a sink may look at its own deadlines (outbox/sink.hpp).
constexpr std::chrono::milliseconds kLookAtDeadlines{100};
/// The origin of an error that says that the target is gone for good (RFC 9110, 15.5.11).
constexpr std::string_view kGone = "http:410";

Outcome not_sent(Outcome::Kind kind, Error error) {
  return {.kind = kind, .error = std::move(error)};
}

/// A sink for one run at a time. Only one thread at a time may use it, except that any may call
/// ring().
class Sender {
 public:
  explicit Sender(std::unique_ptr<Sink> sink)
      : sink_(std::move(sink)), answers_(dynamic_cast<sink::Answers*>(sink_.get())) {
    sink_->on_ready([this] { ring(); });
    if (answers_ != nullptr) answers_->keep_answers();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  Sender(Sender&&) = delete;
  Sender& operator=(Sender&&) = delete;
  ~Sender() {
    sink_->on_ready({});
    sink_->close();
  }

  [[nodiscard]] const Sink& sink() const { return *sink_; }
  [[nodiscard]] format::RenderBuffer& buffer() { return buffer_; }
  /// The answer to the message that was acked last.
  [[nodiscard]] sink::AnswerBody answer() {
    return answers_ != nullptr ? answers_->take_answer() : sink::AnswerBody();
  }

  /// Sends the message and waits for its outcome. On a stop the message is given up, and the
  /// outcome is what is known then.
  [[nodiscard]] Outcome send(const Message& message, const std::stop_token& stop) {
    Outcome outcome = try_to_send(message, stop);
    // After any other failure, which is the destination's, the sink is opened again.
    open_ = open_ &&
            (outcome.kind == Outcome::Kind::acked ||
             (outcome.kind == Outcome::Kind::rejected && outcome.error.effect == Effect::none));
    return outcome;
  }

 private:
  Outcome try_to_send(const Message& message, const std::stop_token& stop) {
    if (!open_) {
      if (Status opened = sink_->open(); !opened)
        return not_sent(Outcome::Kind::blocked, std::move(opened.error()));
      open_ = true;
    }
    const auto give_up = [&] {
      open_ = false;
      return not_sent(Outcome::Kind::retry,
                      fail(Errc::cancelled, Remedy::retry_call, "nothing was sent yet").value());
    };
    if (stop.stop_requested() || sink_->send({&message, 1}) == 0) return give_up();
    std::vector<Outcome> outcomes;
    while (true) {
      sink_->receive(outcomes);
      if (!outcomes.empty()) return std::move(outcomes.front());
      if (stop.stop_requested()) break;
      wait(stop);
    }
    sink_->purge();
    sink_->receive(outcomes);
    open_ = false;
    return outcomes.empty() ? Outcome() : std::move(outcomes.front());
  }

  void wait(const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    (void)rung_.wait_for(mutex_, stop, kLookAtDeadlines,
                         [this]() OUTBOX_REQUIRES(mutex_) { return ringing_; });
    ringing_ = false;
  }

  void ring() {
    {
      const MutexLock lock(mutex_);
      ringing_ = true;
    }
    rung_.notify_one();
  }

  Mutex mutex_;
  std::condition_variable_any rung_;
  bool ringing_ OUTBOX_GUARDED_BY(mutex_){false};
  format::RenderBuffer buffer_;
  bool open_{false};
  const std::unique_ptr<Sink> sink_;
  sink::Answers* const answers_;  ///< The sink; null if it keeps no answers.
};

/// The end of a run that succeeded.
TaskEnd done_with(sink::AnswerBody answer, const TaskRun& run) {
  if (answer.longer) {
    log::warn("a result is too large and is not kept",
              {{"task", run.id.str()}, {"type", run.type}, {"most", answer.text.size()}});
    return TaskEnd::done();
  }
  return answer.text.empty() ? TaskEnd::done() : TaskEnd::done(std::move(answer.text));
}

/// Threads: any.
class SinkHandler {
 public:
  SinkHandler(SubscriptionSpec spec, MakeSink make, format::Renderer renderer)
      : spec_(std::move(spec)), make_(std::move(make)), renderer_(std::move(renderer)) {}

  /// Makes a first sender. If that succeeds, the settings are right.
  [[nodiscard]] Status prepare() {
    OUTBOX_TRY(auto sender, take());
    renderer_.bind(sender->sink().traits());
    put_back(std::move(sender));
    return {};
  }

  [[nodiscard]] TaskEnd run(std::string_view payload, const TaskRun& run) {
    auto sender = take();
    if (!sender) return TaskEnd::failed(sender.error().text());
    const Outcome outcome = send(**sender, payload, run);
    sink::AnswerBody answer = (*sender)->answer();
    put_back(std::move(*sender));
    if (outcome.kind == Outcome::Kind::acked) return done_with(std::move(answer), run);
    TaskEnd end = end_of_outcome(outcome);
    if (!run.stop.stop_requested() || end.kind() != TaskEnd::Kind::failed) return end;
    const bool late = std::chrono::steady_clock::now() >= run.deadline;
    return TaskEnd::failed((late ? "its deadline has passed: " : "it was told to stop: ") +
                           end.reason());
  }

 private:
  [[nodiscard]] Result<std::unique_ptr<Sender>> take() {
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        auto sender = std::move(idle_.back());
        idle_.pop_back();
        return sender;
      }
    }
    OUTBOX_TRY(auto sink, make_(spec_));
    return std::make_unique<Sender>(std::move(sink));
  }

  void put_back(std::unique_ptr<Sender> sender) {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(sender));
  }

  [[nodiscard]] Outcome send(Sender& sender, std::string_view payload, const TaskRun& run) const {
    const std::string aggregate_type = event::make_aggregate_type(run.queue);
    const EventView event{.seq = run.seq,
                          .id = run.id,
                          .aggregate_type = aggregate_type,
                          .aggregate_id = run.key,
                          .event_type = run.type,
                          .payload = payload,
                          .content_type = run.content_type,
                          .headers = run.headers,
                          .created_at = run.created_at};
    format::RenderBuffer& buffer = sender.buffer();
    buffer.clear();
    renderer_.render(1, event, buffer, run.attempt);
    Message message = buffer.messages().front();
    const std::string attempt = std::to_string(run.attempt);
    std::vector<HeaderView> headers(message.headers.begin(), message.headers.end());
    headers.push_back({.name = kAttemptHeader, .value = attempt});
    message.headers = headers;
    return sender.send(message, run.stop);
  }

  const SubscriptionSpec spec_;
  const MakeSink make_;
  format::Renderer renderer_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Sender>> idle_ OUTBOX_GUARDED_BY(mutex_);
};

/// Whether a rejected message may succeed later: an address that depends on the task may exist by
/// the next run.
bool can_succeed_later(const Error& error) { return error.code == Errc::not_found; }

}  // namespace

TaskEnd end_of_outcome(const Outcome& outcome) {
  const std::string reason = outcome.error.text();
  if (outcome.error.origin == kGone) return TaskEnd::dead(reason);
  switch (outcome.kind) {
    case Outcome::Kind::acked: return TaskEnd::done();
    case Outcome::Kind::rejected:
      if (outcome.final || !can_succeed_later(outcome.error)) return TaskEnd::dead(reason);
      break;
    case Outcome::Kind::postponed:
      if (outcome.retry_after) return TaskEnd::snooze(*outcome.retry_after, reason);
      break;
    case Outcome::Kind::unknown:
    case Outcome::Kind::retry:
    case Outcome::Kind::blocked: break;
  }
  return outcome.retry_after ? TaskEnd::retry_after(*outcome.retry_after, reason)
                             : TaskEnd::failed(reason);
}

Result<Handlers::Run> sink_handler(SubscriptionSpec spec) {
  return sink_handler(std::move(spec), sink::make_sink);
}

Result<Handlers::Run> sink_handler(SubscriptionSpec spec, MakeSink make) {
  OUTBOX_TRY(auto renderer, format::Renderer::create(spec));
  const auto handler =
      std::make_shared<SinkHandler>(std::move(spec), std::move(make), std::move(renderer));
  OUTBOX_TRY(handler->prepare());
  return Handlers::Run([handler](std::string_view payload, const TaskRun& run) {
    return handler->run(payload, run);
  });
}

}  // namespace outbox::task
