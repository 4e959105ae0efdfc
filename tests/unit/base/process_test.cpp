#include "base/process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace outbox {
namespace {

/// A child that has ended and is a zombie until reap() is called.
class EndedChild {
 public:
  EndedChild() : pid_(::fork()) {
    if (pid_ == 0) ::_exit(0);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  EndedChild(const EndedChild&) = delete;
  EndedChild& operator=(const EndedChild&) = delete;
  EndedChild(EndedChild&&) = delete;
  EndedChild& operator=(EndedChild&&) = delete;
  ~EndedChild() { reap(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void reap() {
    if (!reaped_) ::waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }

 private:
  pid_t pid_;
  bool reaped_{false};
};

TEST(ProcessIdentity, of_a_running_process_is_not_gone) {
  const ProcessIdentity self = this_process();
  EXPECT_FALSE(self.boot_id.empty());
  EXPECT_FALSE(self.pid_ns.empty());
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_GT(self.started, 0);
  EXPECT_FALSE(is_gone(self, self));
}

TEST(ProcessIdentity, of_an_ended_process_is_gone_also_while_it_is_a_zombie) {
  const ProcessIdentity self = this_process();
  EndedChild child;
  ProcessIdentity other = self;
  other.pid = child.pid();
  other.started = 0;  // not known
  EXPECT_TRUE(is_gone(other, self));
  child.reap();
  EXPECT_TRUE(is_gone(other, self));
}

TEST(ProcessIdentity, with_a_reused_pid_is_gone) {
  const ProcessIdentity self = this_process();
  ProcessIdentity earlier = self;
  earlier.started = self.started - 1;
  EXPECT_TRUE(is_gone(earlier, self));
}

TEST(ProcessIdentity, of_another_machine_or_namespace_is_never_gone) {
  const ProcessIdentity self = this_process();
  EndedChild child;
  ProcessIdentity elsewhere = self;
  elsewhere.pid = child.pid();
  child.reap();
  elsewhere.boot_id = "another";
  EXPECT_FALSE(is_gone(elsewhere, self));
  elsewhere.boot_id = self.boot_id;
  elsewhere.pid_ns = "another";
  EXPECT_FALSE(is_gone(elsewhere, self));
}

}  // namespace
}  // namespace outbox
