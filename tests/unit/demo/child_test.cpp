#include "demo/child.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace outbox::demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ChildTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "outbox-child-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<Child> shell(const std::string& script) {
    return Child::start(
        {.program = "/bin/sh", .arguments = {"sh", "-c", script}, .log = folder_ / "log"});
  }
  std::string log() const {
    std::ifstream in(folder_ / "log");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

TEST_F(ChildTest, says_how_it_ended) {
  auto child = shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(child);
  EXPECT_TRUE(child->wait(seconds(10)));
  EXPECT_FALSE(child->running());
  EXPECT_EQ(child->ended_with(), "exit status 3");
  EXPECT_EQ(log(), "out\nerr\n");
}

TEST_F(ChildTest, is_killed) {
  auto child = shell("exec sleep 100");
  ASSERT_TRUE(child);
  EXPECT_TRUE(child->running());
  child->kill();
  EXPECT_FALSE(child->running());
  EXPECT_EQ(child->ended_with(), "signal 9");
}

TEST_F(ChildTest, is_asked_to_stop_before_it_is_killed) {
  auto child = shell("trap 'echo stopping; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(child);
  for (int i = 0; i < 1000 && log().empty(); ++i) (void)child->wait(milliseconds(10));
  EXPECT_TRUE(child->stop(seconds(10)));
  EXPECT_EQ(child->ended_with(), "exit status 0");
  EXPECT_EQ(log(), "ready\nstopping\n");
}

TEST_F(ChildTest, that_does_not_listen_is_killed) {
  auto child = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(child);
  for (int i = 0; i < 1000 && log().empty(); ++i) (void)child->wait(milliseconds(10));
  EXPECT_FALSE(child->stop(milliseconds(50)));
  EXPECT_EQ(child->ended_with(), "signal 9");
}

TEST_F(ChildTest, does_not_survive_us) {
  // A process that starts a child and dies without a word.
  int pid_pipe[2];
  ASSERT_EQ(pipe(pid_pipe), 0);
  const pid_t middle = fork();
  if (middle == 0) {
    auto child = shell("echo $$; exec sleep 100");
    for (int i = 0; i < 1000 && log().find('\n') == std::string::npos; ++i)
      (void)child->wait(milliseconds(10));
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
  for (int i = 0; i < 1000 && !gone(); ++i) usleep(10'000);
  EXPECT_TRUE(gone());
}

TEST_F(ChildTest, that_cannot_be_executed_ends_with_127) {
  auto child = Child::start(
      {.program = "/nonexistent/program", .arguments = {"program"}, .log = folder_ / "log"});
  ASSERT_TRUE(child);
  EXPECT_TRUE(child->wait(seconds(10)));
  EXPECT_EQ(child->ended_with(), "exit status 127");
}

}  // namespace
}  // namespace outbox::demo
