// Tests sinks as handlers: which message a task becomes, how its outcome ends the run, and how it
// is given up. The sinks are fakes; tests/cli has real servers.
#include "task/sink_handler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <thread>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "support/eventually.hpp"

namespace outbox::task {
namespace {

using std::chrono::seconds;
using test::eventually;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Kind = Outcome::Kind;

Error error_of(Errc code, std::string origin = {}) {
  Error error = fail(code, "it said no").value();
  error.origin = std::move(origin);
  return error;
}

// ---- outcomes

struct Case {
  Outcome outcome;
  TaskEnd::Kind end;
};

TEST(EndOfOutcome, says_whether_the_task_runs_again) {
  const std::vector<Case> cases{
      {{.kind = Kind::acked}, TaskEnd::Kind::done},
      {{.kind = Kind::unknown}, TaskEnd::Kind::failed},
      {{.kind = Kind::retry, .error = error_of(Errc::unavailable, "http:503")},
       TaskEnd::Kind::failed},
      {{.kind = Kind::retry, .error = error_of(Errc::unavailable, "smtp:450")},
       TaskEnd::Kind::failed},
      {{.kind = Kind::blocked, .error = error_of(Errc::permission_denied, "http:401")},
       TaskEnd::Kind::failed},
      {{.kind = Kind::blocked, .error = error_of(Errc::not_found, "http:404")},
       TaskEnd::Kind::failed},
      {{.kind = Kind::rejected, .error = error_of(Errc::not_found, "http:404")},
       TaskEnd::Kind::failed},
      {{.kind = Kind::blocked, .error = error_of(Errc::not_found, "http:410")},
       TaskEnd::Kind::dead},
      {{.kind = Kind::rejected, .error = error_of(Errc::not_found, "http:410")},
       TaskEnd::Kind::dead},
      {{.kind = Kind::rejected, .error = error_of(Errc::invalid_argument, "http:400")},
       TaskEnd::Kind::dead},
      {{.kind = Kind::rejected, .error = error_of(Errc::too_large, "http:413")},
       TaskEnd::Kind::dead},
      {{.kind = Kind::rejected, .error = error_of(Errc::invalid_argument, "smtp:550")},
       TaskEnd::Kind::dead},
      // This mail may have been sent, and on_unknown is "park".
      {{.kind = Kind::rejected, .error = error_of(Errc::unavailable)}, TaskEnd::Kind::dead},
      {{.kind = Kind::rejected, .error = error_of(Errc::not_found), .final = true},
       TaskEnd::Kind::dead},
      {{.kind = Kind::postponed, .retry_after = seconds(1)}, TaskEnd::Kind::snoozed},
  };
  for (const Case& one : cases) {
    const TaskEnd end = end_of_outcome(one.outcome);
    EXPECT_EQ(end.kind(), one.end)
        << to_string(one.outcome.kind) << " " << one.outcome.error.origin;
    EXPECT_EQ(end.reason(), one.end == TaskEnd::Kind::done ? "" : one.outcome.error.text());
  }
}

TEST(EndOfOutcome, keeps_the_pause_that_was_asked_for) {
  EXPECT_EQ(end_of_outcome({.kind = Kind::retry, .retry_after = seconds(7)}).pause(), seconds(7));
  EXPECT_EQ(end_of_outcome({.kind = Kind::blocked, .retry_after = seconds(7)}).pause(), seconds(7));
  EXPECT_EQ(end_of_outcome({.kind = Kind::retry}).pause(), std::nullopt);
}

// ---- runs

/// The messages that the sinks of a handler were sent, and what the sinks answer.
struct World {
  Mutex mutex;
  std::vector<std::string> seen OUTBOX_GUARDED_BY(mutex);
  std::atomic<int> sinks{0};
  std::atomic<int> opened{0};
  std::atomic<int> waiting{0};
  std::atomic<Kind> answer{Kind::acked};
  std::atomic<bool> hangs{false};
  std::atomic<bool> cannot_open{false};
};

/// Answers on a thread of its own, or, if world.hangs, not before purge().
class FakeSink final : public Sink {
 public:
  explicit FakeSink(World& world) : world_(world) { ++world_.sinks; }
  [[nodiscard]] SinkTraits traits() const noexcept override { return {.name = "fake"}; }
  [[nodiscard]] Status open() override {
    ++world_.opened;
    if (world_.cannot_open) return fail(Errc::unavailable, "nobody is there");
    return {};
  }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override {
    const Message& message = messages.front();
    std::string text(message.body);
    for (const HeaderView& header : message.headers) {
      if (header.name == "outbox-id" || header.name == kAttemptHeader || header.name == "x-key" ||
          header.name == "outbox-time" || header.name == "a")
        text.append(" ").append(header.value);
    }
    {
      const MutexLock lock(world_.mutex);
      world_.seen.push_back(std::move(text));
    }
    token_ = message.token;
    if (world_.hangs) {
      ++world_.waiting;
    } else {
      answers_ = std::thread([this] {
        answered_ = true;
        wake();
      });
    }
    return 1;
  }
  void receive(std::vector<Outcome>& outcomes) override {
    if (!answered_) return;
    answers_.join();
    answered_ = false;
    outcomes.push_back({.token = token_, .kind = world_.answer});
  }
  void purge() override {
    world_.answer = Kind::unknown;
    answers_ = std::thread([] {});
    answered_ = true;
    --world_.waiting;
  }
  void close() noexcept override {
    if (answers_.joinable()) answers_.join();
  }

 private:
  World& world_;
  Token token_{0};
  std::thread answers_;
  std::atomic<bool> answered_{false};
};

class SinkAsHandler : public ::testing::Test {
 protected:
  SinkAsHandler()
      : run_(
            sink_handler({.name = "task", .sink = "fake", .headers = {{"x-key", "{aggregate_id}"}}},
                         [this](const SubscriptionSpec&) -> Result<std::unique_ptr<Sink>> {
                           return std::make_unique<FakeSink>(world_);
                         })
                .value()) {}

  TaskEnd run(const std::string& payload, std::stop_token stop = {},
              std::chrono::steady_clock::time_point deadline =
                  std::chrono::steady_clock::time_point::max()) {
    const TaskRun task{.id = EventId::parse("01890a5d-ac96-774b-bcce-b302099a8057").value(),
                       .queue = "reports",
                       .type = "report.make",
                       .key = "k",
                       .content_type = "text/plain",
                       .headers = R"({"a":"b"})",
                       .attempt = 3,
                       .created_at = std::chrono::sys_days(std::chrono::January / 2 / 2026),
                       .deadline = deadline,
                       .stop = std::move(stop)};
    return run_(payload, task);
  }
  std::vector<std::string> seen() {
    const MutexLock lock(world_.mutex);
    return world_.seen;
  }

  World world_;
  Handlers::Run run_;
};

TEST_F(SinkAsHandler, sends_the_task_as_a_message) {
  EXPECT_EQ(run("the payload").kind(), TaskEnd::Kind::done);
  EXPECT_THAT(seen(), ::testing::ElementsAre("the payload 01890a5d-ac96-774b-bcce-b302099a8057 "
                                             "2026-01-02T00:00:00.000000Z b k 3"));
}

TEST_F(SinkAsHandler, keeps_its_sink_open_until_the_destination_fails) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run("x").kind(), TaskEnd::Kind::done);
  EXPECT_EQ(world_.sinks, 1);
  EXPECT_EQ(world_.opened, 1);
  world_.answer = Kind::rejected;
  EXPECT_EQ(run("x").kind(), TaskEnd::Kind::dead);
  world_.answer = Kind::unknown;
  EXPECT_EQ(run("x").kind(), TaskEnd::Kind::failed);
  EXPECT_EQ(world_.opened, 1);
  world_.answer = Kind::acked;
  EXPECT_EQ(run("x").kind(), TaskEnd::Kind::done);
  EXPECT_EQ(world_.opened, 2);
  EXPECT_EQ(world_.sinks, 1);
}

TEST_F(SinkAsHandler, a_destination_that_is_not_there_is_a_failed_run) {
  world_.cannot_open = true;
  const TaskEnd end = run("x");
  EXPECT_EQ(end.kind(), TaskEnd::Kind::failed);
  EXPECT_THAT(end.reason(), HasSubstr("nobody is there"));
  world_.cannot_open = false;
  EXPECT_EQ(run("x").kind(), TaskEnd::Kind::done);
}

TEST_F(SinkAsHandler, at_a_stop_the_message_is_given_up) {
  for (const bool late : {false, true}) {
    world_.hangs = true;
    std::stop_source stop;
    std::thread stops([&] {
      EXPECT_TRUE(eventually([&] { return world_.waiting == 1; }));
      stop.request_stop();
    });
    const auto now = std::chrono::steady_clock::now();
    const TaskEnd end = run("x", stop.get_token(), late ? now : now + seconds(1000));
    stops.join();
    EXPECT_EQ(end.kind(), TaskEnd::Kind::failed);
    EXPECT_THAT(end.reason(), StartsWith(late ? "its deadline has passed" : "it was told to stop"));
    EXPECT_EQ(world_.waiting, 0) << "purged";
    world_.hangs = false;
    world_.answer = Kind::acked;
    EXPECT_EQ(run("x").kind(), TaskEnd::Kind::done);
  }
}

TEST_F(SinkAsHandler, runs_at_once_have_a_sink_each_and_leave_them_to_later_ones) {
  world_.hangs = true;
  std::stop_source stop;
  {
    std::vector<std::jthread> runs;
    for (int i = 0; i < 3; ++i) runs.emplace_back([&] { (void)run("x", stop.get_token()); });
    EXPECT_TRUE(eventually([&] { return world_.waiting == 3; }));
    stop.request_stop();
  }
  EXPECT_EQ(world_.sinks, 3);
  world_.hangs = false;
  for (int i = 0; i < 5; ++i) (void)run("x");
  EXPECT_EQ(world_.sinks, 3);
}

TEST(SinkHandler, wrong_settings_are_found_when_it_is_made) {
  const auto made = sink_handler({.name = "task", .sink = "file"});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text(), HasSubstr("file.path"));
}

}  // namespace
}  // namespace outbox::task
