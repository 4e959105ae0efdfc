#include "support/child_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "support/eventually.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

class ChildTest : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> shell(const std::string& script) {
    return std::make_unique<ChildProcess>(ChildProcess::Options{
        .command = {"sh", "-c", script}, .program = "/bin/sh", .output = folder_.file("log")});
  }
  std::string log() const {
    std::ifstream in(folder_.file("log"));
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  const TempDir folder_;
};

TEST_F(ChildTest, says_how_it_ended) {
  auto child = shell("echo out; echo err >&2; exit 3");
  EXPECT_TRUE(child->wait());
  EXPECT_FALSE(child->running());
  EXPECT_EQ(child->ended_with(), "exit status 3");
  EXPECT_EQ(log(), "out\nerr\n");
}

TEST_F(ChildTest, is_killed) {
  auto child = shell("exec sleep 100");
  EXPECT_TRUE(child->running());
  child->kill();
  EXPECT_FALSE(child->running());
  EXPECT_EQ(child->ended_with(), "signal 9");
}

TEST_F(ChildTest, gets_signals) {
  auto child = shell("trap 'echo stopping; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  EXPECT_TRUE(eventually([&] { return !log().empty(); }));
  child->signal(SIGTERM);
  EXPECT_TRUE(child->wait());
  EXPECT_EQ(child->ended_with(), "exit status 0");
  EXPECT_EQ(log(), "ready\nstopping\n");
}

TEST_F(ChildTest, does_not_survive_us) {
  // A process that starts a child and dies without a word.
  int pid_pipe[2];
  ASSERT_EQ(pipe(pid_pipe), 0);
  const pid_t middle = fork();
  if (middle == 0) {
    auto child = shell("echo $$; exec sleep 100");
    (void)eventually([&] { return log().find('\n') != std::string::npos; });
    const pid_t pid = static_cast<pid_t>(std::atoi(log().c_str()));
    if (write(pid_pipe[1], &pid, sizeof pid) < 0) _exit(1);
    ::raise(SIGKILL);
  }
  close(pid_pipe[1]);
  pid_t grandchild = 0;
  ASSERT_EQ(read(pid_pipe[0], &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  close(pid_pipe[0]);
  ASSERT_GT(grandchild, 0);
  EXPECT_EQ(waitpid(middle, nullptr, 0), middle);
  const auto gone = [&] {
    // Dead, even where nobody reaps it.
    std::ifstream status("/proc/" + std::to_string(grandchild) + "/stat");
    std::string line;
    if (!std::getline(status, line)) return true;
    return line.find(") Z ") != std::string::npos || line.find(") X ") != std::string::npos;
  };
  EXPECT_TRUE(eventually(gone));
}

TEST_F(ChildTest, gets_our_environment_but_what_is_left_out) {
  ASSERT_EQ(setenv("OUTBOX_CHILD_TEST", "ours", 1), 0);
  ChildProcess child({.command = {"/bin/sh", "-c", "echo $HOME,$OUTBOX_CHILD_TEST,$ADDED"},
                      .environment = {{"ADDED", "yes"}, {"HOME", "/there"}},
                      .without = "OUTBOX_",
                      .output = folder_.file("log")});
  EXPECT_TRUE(child.wait());
  EXPECT_EQ(log(), "/there,,yes\n");
}

TEST_F(ChildTest, that_cannot_be_executed_ends_with_127) {
  ChildProcess child({.command = {"/nonexistent/program"}});
  EXPECT_TRUE(child.wait());
  EXPECT_EQ(child.ended_with(), "exit status 127");
}

}  // namespace
}  // namespace outbox::test
