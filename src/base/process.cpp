#include "base/process.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>

namespace outbox {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_target(const char* path) {
  std::array<char, 128> target{};
  const ssize_t size = ::readlink(path, target.data(), target.size());
  return size < 0 ? std::string{} : std::string(target.data(), static_cast<std::size_t>(size));
}

struct Stat {
  char state{'?'};
  std::int64_t started{0};
};

/// Reads "pid (name) state ..." of proc(5). The name may have any character; field 22: start.
std::optional<Stat> read_stat(std::int64_t pid) {
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  Stat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.started;
  if (!fields) return std::nullopt;
  return stat;
}

}  // namespace

ProcessIdentity this_process() {
  ProcessIdentity self;
  self.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  self.pid_ns = link_target("/proc/self/ns/pid");
  self.pid = ::getpid();
  if (const auto stat = read_stat(self.pid)) self.started = stat->started;
  return self;
}

std::string process_name() {
  char host[256] = "localhost";
  (void)::gethostname(host, sizeof host - 1);
  return std::string(host) + ":" + std::to_string(::getpid());
}

bool is_gone(const ProcessIdentity& process, const ProcessIdentity& self) {
  if (self.boot_id.empty() || self.pid_ns.empty() || process.pid <= 0) return false;
  if (process.boot_id != self.boot_id || process.pid_ns != self.pid_ns) return false;
  // Signal 0 also finds processes that /proc hides from us (mount option hidepid).
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return true;
  const auto stat = read_stat(process.pid);
  if (!stat) return false;
  const bool other = process.started != 0 && stat->started != process.started;
  return other || stat->state == 'Z' || stat->state == 'X';
}

}  // namespace outbox
