// A worker in a process of its own, for tests to kill and stop. It has one queue, "default", whose
// handlers append lines to a file.
//
//   outbox_test_worker URL FILE LEASE_MS HEARTBEAT_MS
//
// note    appends the payload; note0 to note9 do the same
// slow    appends "begin PAYLOAD", waits for FILE.go, then appends "end PAYLOAD"; appends
//         "told PAYLOAD" instead if it is told to stop
// made    appends the payload and returns it as the task's result
// second  fails in its first run and appends the payload in the second
// crash   kills the process, as a bug in a handler would
// later   does what slow does, then kills the process unless it was told to stop
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <outbox/worker.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "base/log.hpp"

namespace {

class Lines {
 public:
  explicit Lines(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  /// There is a line break before the line, too, so that the incomplete line of a killed process
  /// spoils only itself.
  void add(std::string_view text) const {
    const std::string line = "\n" + std::string(text) + "\n";
    if (::write(file_, line.data(), line.size()) < 0) std::abort();
  }

 private:
  const int file_;
};

void run_slow(const Lines& lines, const std::string& gate, const std::string& payload,
              const outbox::TaskRun& run) {
  lines.add("begin " + payload);
  while (::access(gate.c_str(), F_OK) != 0) {
    if (run.stop.stop_requested()) return lines.add("told " + payload);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  lines.add("end " + payload);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  outbox::log::configure("info", outbox::log::Format::text);

  const Lines lines(argv[2]);
  const std::string gate = std::string(argv[2]) + ".go";
  outbox::Handlers handlers;
  const auto note = [&](std::string_view payload, const outbox::TaskRun&) { lines.add(payload); };
  handlers.on("note", note);
  for (int i = 0; i < 10; ++i) handlers.on("note" + std::to_string(i), note);
  handlers.on("slow", [&](std::string_view payload, const outbox::TaskRun& run) {
    run_slow(lines, gate, std::string(payload), run);
  });
  handlers.on("made", [&](std::string_view payload, const outbox::TaskRun&) {
    lines.add(payload);
    return outbox::TaskEnd::done(std::string(payload));
  });
  handlers.on("second", [&](std::string_view payload, const outbox::TaskRun& run) {
    if (run.attempt < 2) return outbox::TaskEnd::retry_after(std::chrono::seconds(2), "the first");
    lines.add(payload);
    return outbox::TaskEnd::done();
  });
  handlers.on("crash", [](std::string_view, const outbox::TaskRun&) { (void)std::raise(SIGKILL); });
  handlers.on("later", [&](std::string_view payload, const outbox::TaskRun& run) {
    run_slow(lines, gate, std::string(payload), run);
    if (!run.stop.stop_requested()) (void)std::raise(SIGKILL);
  });

  outbox::WorkerOptions options;
  options.relay.store_url = argv[1];
  options.relay.name = "worker-" + std::to_string(::getpid());
  options.relay.lease = std::chrono::milliseconds(std::atoi(argv[3]));
  options.heartbeat = std::chrono::milliseconds(std::atoi(argv[4]));
  options.threads = 4;
  options.delays = {std::chrono::milliseconds(50), std::chrono::milliseconds(50),
                    std::chrono::milliseconds(50)};
  auto worker = outbox::Worker::create(options, handlers);
  if (!worker) {
    std::fprintf(stderr, "%s\n", worker.error().text().c_str());
    return 1;
  }
  if (auto status = (*worker)->start(); !status) {
    std::fprintf(stderr, "%s\n", status.error().text().c_str());
    return 1;
  }
  int signal = 0;
  (void)sigwait(&ends, &signal);
  return (*worker)->stop(std::chrono::seconds(20)).drained ? 0 : 4;
}
