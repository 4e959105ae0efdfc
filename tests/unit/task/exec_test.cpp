// Tests programs as handlers, with real processes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/eventually.hpp"
#include "support/temp_dir.hpp"
#include "task/exec_handler.hpp"

namespace outbox::task {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::eventually;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Exec : public ::testing::Test {
 protected:
  TaskEnd run(const std::string& script, const std::string& payload = "",
              std::stop_token stop = {}) {
    ChildOptions options{.command = {"/bin/sh", "-c", script}};
    options.patience = milliseconds(100);
    options.most_output = 1000;
    return run_of(options, payload, std::move(stop));
  }
  TaskEnd run_of(const ChildOptions& options, const std::string& payload,
                 std::stop_token stop = {}) {
    const TaskRun task{.id = EventId::parse("01890a5d-ac96-774b-bcce-b302099a8057").value(),
                       .queue = "reports",
                       .type = "report.make",
                       .key = "k=1",
                       .content_type = "text/plain",
                       .headers = R"({"a":"b"})",
                       .attempt = 3,
                       .stop = std::move(stop)};
    return exec_handler(options)(payload, task);
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::stringstream all;
    all << std::ifstream(folder_.file(name)).rdbuf();
    return all.str();
  }
  static bool is_gone(const std::string& pid) {
    return ::kill(static_cast<pid_t>(std::stol(pid)), 0) != 0 && errno == ESRCH;
  }

  const test::TempDir folder_;
};

TEST_F(Exec, a_program_gets_the_payload_and_knows_its_task) {
  const std::string file = folder_.file("seen");
  const TaskEnd end = run("{ cat; env | grep ^OUTBOX_TASK_ | sort; } > " + file, "the payload\n");
  EXPECT_EQ(end.kind(), TaskEnd::Kind::done);
  EXPECT_EQ(text_of("seen"),
            "the payload\n"
            "OUTBOX_TASK_ATTEMPT=3\n"
            "OUTBOX_TASK_CONTENT_TYPE=text/plain\n"
            "OUTBOX_TASK_HEADERS={\"a\":\"b\"}\n"
            "OUTBOX_TASK_ID=01890a5d-ac96-774b-bcce-b302099a8057\n"
            "OUTBOX_TASK_KEY=k=1\n"
            "OUTBOX_TASK_QUEUE=reports\n"
            "OUTBOX_TASK_TYPE=report.make\n");
}

TEST_F(Exec, its_exit_status_decides) {
  EXPECT_EQ(run("exit 0").kind(), TaskEnd::Kind::done);
  EXPECT_EQ(run("exit 1").kind(), TaskEnd::Kind::failed);
  EXPECT_EQ(run("exit 75").kind(), TaskEnd::Kind::failed);
  EXPECT_EQ(run("exit 65").kind(), TaskEnd::Kind::dead);
  EXPECT_EQ(run("echo no such month >&2; exit 65").reason(),
            "the program ended with status 65: no such month");
  const TaskEnd killed = run("kill -9 $$");
  EXPECT_EQ(killed.kind(), TaskEnd::Kind::failed);
  EXPECT_EQ(killed.reason(), "the program was ended by SIGKILL");
}

TEST_F(Exec, a_program_that_cannot_be_run_is_named) {
  const TaskEnd end = run_of({.command = {"/nowhere/to/be/found"}}, "x");
  EXPECT_EQ(end.kind(), TaskEnd::Kind::failed);
  EXPECT_THAT(end.reason(), HasSubstr("/nowhere/to/be/found: No such file or directory"));
}

TEST_F(Exec, a_program_need_not_read_its_input_nor_end_its_output) {
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(run("exit 0", large).kind(), TaskEnd::Kind::done);
  EXPECT_EQ(run("exec 0<&-; sleep 0.05", large).kind(), TaskEnd::Kind::done);
  EXPECT_EQ(run("[ $(wc -c) = " + std::to_string(large.size()) + " ]", large).kind(),
            TaskEnd::Kind::done);
  // The process that it leaves behind holds its output open.
  const TaskEnd end = run("sleep 1000 & echo $! > " + folder_.file("pid"));
  EXPECT_EQ(end.kind(), TaskEnd::Kind::done);
  EXPECT_TRUE(eventually([&] { return is_gone(text_of("pid")); }));
}

TEST_F(Exec, of_much_output_the_last_errors_are_kept) {
  const TaskEnd end =
      run("yes first | head -c 199998 >&2; yes output | head -c 200000; echo last >&2; exit 1");
  EXPECT_THAT(end.reason(), StartsWith("the program ended with status 1: "));
  EXPECT_LT(end.reason().size(), 1100U);
  EXPECT_EQ(end.reason().substr(end.reason().size() - 5), "\nlast");
}

TEST_F(Exec, at_a_stop_it_is_told_and_then_killed_with_all_it_started) {
  for (const bool listens : {true, false}) {
    const std::string pids = folder_.file("pids");
    std::filesystem::remove(pids);
    std::stop_source stop;
    std::thread stops([&] {
      EXPECT_TRUE(eventually([&] { return text_of("pids").find('\n') != std::string::npos; }));
      stop.request_stop();
    });
    const std::string trap = listens ? "trap 'exit 3' TERM; " : "trap '' TERM; ";
    const TaskEnd end = run(trap + "sleep 1000 & echo $! > " + pids + "; while :; do wait; done",
                            "", stop.get_token());
    stops.join();
    EXPECT_EQ(end.kind(), TaskEnd::Kind::failed);
    EXPECT_THAT(end.reason(), HasSubstr(listens ? "status 3" : "SIGKILL when it was told to stop"));
    EXPECT_TRUE(eventually([&] { return is_gone(text_of("pids")); }));
  }
}

TEST_F(Exec, descriptors_and_blocked_signals_of_this_process_are_not_inherited) {
  const int secret = ::open("/etc/hostname", O_RDONLY);  // O_CLOEXEC is left out on purpose.
  ASSERT_GT(secret, 2);
  EXPECT_EQ(run("[ ! -e /proc/self/fd/" + std::to_string(secret) + " ]").kind(),
            TaskEnd::Kind::done);
  ::close(secret);
  EXPECT_EQ(run("grep -q '^SigBlk:.0*$' /proc/self/status").kind(), TaskEnd::Kind::done);
}

}  // namespace
}  // namespace outbox::task
