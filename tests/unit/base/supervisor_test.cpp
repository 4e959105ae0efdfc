// Tests what systemd is told, and that it is not told that a service is alive when it is not.
#include "base/supervisor.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace outbox {
namespace {

/// The socket of systemd, with an abstract address.
class Systemd {
 public:
  Systemd() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const std::string name = "@outbox-supervisor-test-" + std::to_string(::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::setenv("NOTIFY_SOCKET", name.c_str(), 1), 0);
    EXPECT_EQ(::setenv("WATCHDOG_USEC", "3000", 1), 0);
  }
  Systemd(const Systemd&) = delete;
  Systemd& operator=(const Systemd&) = delete;
  Systemd(Systemd&&) = delete;
  Systemd& operator=(Systemd&&) = delete;
  ~Systemd() { ::close(socket_); }

  /// The next message; empty if there is none.
  [[nodiscard]] std::string hear() const {
    std::array<char, 256> text{};
    const ssize_t size = ::recv(socket_, text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(size));
  }

 private:
  int socket_;
};

TEST(Supervisor, tells_systemd_and_takes_the_variables_away) {
  const Systemd systemd;
  const Supervisor supervisor;
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  EXPECT_EQ(std::getenv("WATCHDOG_USEC"), nullptr);
  supervisor.ready("delivering");
  EXPECT_EQ(systemd.hear(), "READY=1\nSTATUS=delivering");
  supervisor.alive();
  EXPECT_EQ(systemd.hear(), "WATCHDOG=1");
  supervisor.stopping();
  EXPECT_EQ(systemd.hear(), "STOPPING=1\nSTATUS=stopping");
}

TEST(Supervisor, says_that_it_is_alive_while_it_is) {
  const Systemd systemd;
  const Supervisor supervisor;
  const Signals signals(1);
  int looks = 0;
  supervisor.wait(signals, [&] {
    ++looks;
    if (looks == 5) {
      EXPECT_EQ(::kill(::getpid(), SIGTERM), 0);
    }
    return looks <= 2;
  });
  EXPECT_GE(looks, 5);
  EXPECT_EQ(systemd.hear(), "WATCHDOG=1");
  EXPECT_EQ(systemd.hear(), "WATCHDOG=1");
  EXPECT_EQ(systemd.hear(), "") << "it hung from then on";
}

TEST(Supervisor, without_systemd_it_is_silent) {
  const Supervisor supervisor;
  supervisor.ready("delivering");
  supervisor.alive();
  supervisor.stopping();
}

}  // namespace
}  // namespace outbox
