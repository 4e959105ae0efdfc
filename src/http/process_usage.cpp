#include "http/process_usage.hpp"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace outbox::http {
namespace {

/// The start of the machine. Unit: seconds since 1970.
double read_boot_time() {
  std::ifstream stat("/proc/stat");
  for (std::string word; stat >> word;) {
    if (word != "btime") continue;
    double time = 0;
    stat >> time;
    return time;
  }
  return 0;
}

/// Reads /proc/self/stat (proc(5)). Its second field, the name of the program, may have spaces.
void read_stat(ProcessUsage& usage) {
  std::ifstream file("/proc/self/stat");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  std::istringstream fields(all.substr(std::min(all.rfind(')') + 2, all.size())));
  std::string skipped;
  const auto skip = [&](int count) {
    for (int i = 0; i < count; ++i) fields >> skipped;
  };
  double user = 0;
  double system = 0;
  double started = 0;
  std::uint64_t pages = 0;
  skip(11);  // up to cmajflt
  fields >> user >> system;
  skip(4);  // cutime to nice
  fields >> usage.threads;
  skip(1);  // itrealvalue
  fields >> started >> usage.virtual_bytes >> pages;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  usage.cpu = std::chrono::duration<double>((user + system) / ticks);
  usage.resident_bytes = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  usage.started_at = read_boot_time() + started / ticks;
}

}  // namespace

ProcessUsage read_usage() {
  ProcessUsage usage;
  read_stat(usage);
  std::error_code error;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error))
    ++usage.open_files;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) usage.max_files = limit.rlim_cur;
  return usage;
}

void add_usage(const ProcessUsage& usage, metrics::Families& into) {
  using namespace metrics::metric;  // NOLINT(google-build-using-namespace): the table
  into.add(kCpu, {}, usage.cpu.count());
  into.add(kResidentMemory, {}, static_cast<double>(usage.resident_bytes));
  into.add(kVirtualMemory, {}, static_cast<double>(usage.virtual_bytes));
  into.add(kOpenFds, {}, static_cast<double>(usage.open_files));
  into.add(kMaxFds, {}, static_cast<double>(usage.max_files));
  into.add(kThreads, {}, static_cast<double>(usage.threads));
  into.add(kStartTime, {}, usage.started_at);
}

}  // namespace outbox::http
