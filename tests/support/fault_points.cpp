#include "support/fault_points.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>

namespace outbox::test {
namespace {

struct Fault {
  std::string point;
  int nth{0};
  int signal{0};

  Fault() {
    const char* const text = std::getenv("OUTBOX_FAULT_POINT");
    if (text == nullptr) return;
    std::istringstream(text) >> point >> nth >> signal;
    const auto is_one_of = [&](const auto& points) {
      return std::find(points.begin(), points.end(), point) != points.end();
    };
    if (!is_one_of(kFaultPoints) && !is_one_of(kConsumerFaultPoints)) std::abort();
  }
};

}  // namespace

void fault_point(std::string_view point) {
  static const Fault fault;
  static std::atomic<int> times{0};
  if (point != fault.point || ++times != fault.nth) return;
  const char* const path = std::getenv("OUTBOX_FAULT_FILE");
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (::write(file, point.data(), point.size()) < 0) std::abort();
  ::close(file);
  (void)::kill(getpid(), fault.signal);
  // A signal to the process may reach another thread first.
  for (int i = 0; i < 1000 && fault.signal == SIGKILL; ++i) ::usleep(1000);
}

}  // namespace outbox::test
