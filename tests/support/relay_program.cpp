// A relay in a process of its own, for tests to kill and stop: one subscription "lines", delivered to a file.
//
//   outbox_test_relay URL FILE LEASE_MS PAGE_ROWS
//
// It only appends to the file, one line per event, and does not lock it: so what a stopped relay writes when it continues can be
// seen. It logs to stderr, where tests see when it waits. Exit status 4: it stopped with events in flight.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <outbox/relay.hpp>
#include <string>
#include <utility>

#include "base/log.hpp"

namespace {

class LineSink final : public outbox::BatchSink {
 public:
  explicit LineSink(std::string path) : path_(std::move(path)) {}
  ~LineSink() override { LineSink::close(); }
  LineSink(const LineSink&) = delete;
  LineSink& operator=(const LineSink&) = delete;
  LineSink(LineSink&&) = delete;
  LineSink& operator=(LineSink&&) = delete;

  [[nodiscard]] outbox::SinkTraits traits() const noexcept override {
    return {.name = "lines", .gapless = true, .max_batch = 50};
  }
  [[nodiscard]] outbox::Status open() override {
    if (file_ < 0) file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file_ >= 0) return {};
    outbox::Error error;
    error.message = "cannot open " + path_;
    return tl::unexpected(error);
  }
  void close() noexcept override {
    if (file_ >= 0) ::close(std::exchange(file_, -1));
  }

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const outbox::Message> batch,
                                    outbox::Outcome& failure) override {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      // A line break before it too, so that the incomplete line of a killed process spoils only itself.
      const std::string line = "\n" + std::string(batch[i].body) + "\n";
      if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        failure.kind = outbox::Outcome::Kind::unknown;
        return i;
      }
    }
    return batch.size();
  }

 private:
  const std::string path_;
  int file_{-1};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  outbox::log::configure("info", outbox::log::Format::text);

  outbox::RelayOptions options;
  options.store_url = argv[1];
  options.lease = std::chrono::milliseconds(std::atoi(argv[3]));
  options.page_rows = static_cast<std::size_t>(std::atoi(argv[4]));
  outbox::SubscriptionSpec lines;
  lines.name = "lines";
  lines.sink = "custom";
  options.subscriptions = {lines};
  auto relay = outbox::Relay::create(options);
  if (!relay) {
    std::fprintf(stderr, "%s\n", relay.error().text().c_str());
    return 1;
  }
  (void)(*relay)->use("lines", std::make_unique<LineSink>(argv[2]));
  if (auto status = (*relay)->start(); !status) {
    std::fprintf(stderr, "%s\n", status.error().text().c_str());
    return 1;
  }
  int signal = 0;
  (void)sigwait(&ends, &signal);
  return (*relay)->stop(std::chrono::seconds(20)).drained ? 0 : 4;
}
