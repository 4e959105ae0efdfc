// This is preloaded into a program (LD_PRELOAD). The program's wall clock is then off by as many
// seconds as the file OUTBOX_TEST_CLOCK_FILE holds at the moment, as eight bytes. The monotonic
// clock is not touched, as when somebody sets the clock of a machine.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const std::atomic<std::int64_t>* offset() {
  static const std::atomic<std::int64_t>* const shared = [] {
    const char* const path = std::getenv("OUTBOX_TEST_CLOCK_FILE");
    const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    void* const page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) std::abort();
    ::close(file);
    return static_cast<const std::atomic<std::int64_t>*>(page);
  }();
  return shared;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += offset()->load();
  return static_cast<int>(result);
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  timespec exact{};
  (void)clock_gettime(CLOCK_REALTIME, &exact);
  *now = {.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* into) noexcept {
  timespec exact{};
  (void)clock_gettime(CLOCK_REALTIME, &exact);
  if (into != nullptr) *into = exact.tv_sec;
  return exact.tv_sec;
}
}
