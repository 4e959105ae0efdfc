// A relay in a process of its own, for tests to kill and stop. It has one subscription, "lines",
// which it delivers to a file.
//
//   outbox_test_relay URL FILE LEASE_MS PAGE_ROWS
//
// An event of type "Killer" kills it, as a bug in a sink's client would.
//
// It only appends to the file, one line per event, and does not lock it, so that tests see what a
// stopped relay writes when it continues. It logs to stderr, where tests see when it waits. The
// exit status is 4 if it stopped with events in flight.
//
// With OUTBOX_TEST_REJECTS the sink rejects one event in so many when it sees it for the first
// time. With OUTBOX_TEST_RETENTION=1 the relay removes history as soon as it may go.
// With OUTBOX_TEST_REPLICATED=1 events wait for a standby. OUTBOX_TEST_RATE is the subscription's
// rate. support/fault_points.hpp says what
// OUTBOX_FAULT_POINT and OUTBOX_FAULT_FILE do.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <outbox/relay.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "base/units.hpp"
#include "support/fault_points.hpp"

namespace {

using outbox::test::fault_point;

/// The number in the variable; 0 if it is not set.
std::size_t number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : static_cast<std::size_t>(std::atoi(text));
}

/// Writes the lines for LineSink, whose calls have fault points.
class LineWriter final : public outbox::BatchSink {
 public:
  explicit LineWriter(std::string path) : path_(std::move(path)) {}
  ~LineWriter() override { LineWriter::close(); }
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  LineWriter(LineWriter&&) = delete;
  LineWriter& operator=(LineWriter&&) = delete;

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
      if (batch[i].event->event_type == "Killer") {
        (void)std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would end the process otherwise
        (void)std::raise(SIGSEGV);
      }
      if (i == batch.size() / 2) fault_point("send.within");
      if (rejects(batch[i])) {
        failure.kind = outbox::Outcome::Kind::rejected;
        return i;
      }
      // There is a line break before the line, too, so that the incomplete line of a killed process
      // spoils only itself.
      const std::string line = "\n" + std::string(batch[i].body) + "\n";
      if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        failure.kind = outbox::Outcome::Kind::unknown;
        return i;
      }
    }
    return batch.size();
  }

 private:
  bool rejects(const outbox::Message& message) {
    const std::uint64_t hash = std::hash<std::string_view>{}(message.body);
    return reject_ != 0 && hash % reject_ == 0 && rejected_.insert(hash).second;
  }

  const std::string path_;
  int file_{-1};
  const std::size_t reject_{number_in("OUTBOX_TEST_REJECTS")};
  std::set<std::uint64_t> rejected_;
};

class LineSink final : public outbox::Sink {
 public:
  explicit LineSink(std::string path) : lines_(std::move(path)) {}
  [[nodiscard]] outbox::SinkTraits traits() const noexcept override { return lines_.traits(); }
  [[nodiscard]] outbox::Status open() override {
    fault_point("open.before");
    outbox::Status status = lines_.open();
    fault_point("open.after");
    return status;
  }
  [[nodiscard]] std::size_t send(std::span<const outbox::Message> messages) override {
    fault_point("send.before");
    const std::size_t taken = lines_.send(messages);
    fault_point("send.after");
    return taken;
  }
  void receive(std::vector<outbox::Outcome>& outcomes) override {
    fault_point("ack.before");
    lines_.receive(outcomes);
    if (!outcomes.empty()) fault_point("ack.after");
  }
  void purge() override { lines_.purge(); }
  void close() noexcept override { lines_.close(); }

 private:
  LineWriter lines_;
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
  lines.retry_base = std::chrono::milliseconds(50);
  lines.retry_factor = 1;
  lines.max_attempts = 1000;
  if (const char* rate = std::getenv("OUTBOX_TEST_RATE"))
    lines.rate = outbox::parse_rate(rate).value();
  options.subscriptions = {lines};
  if (number_in("OUTBOX_TEST_RETENTION") != 0) options.retention = std::chrono::milliseconds(0);
  if (number_in("OUTBOX_TEST_REPLICATED") != 0)
    options.publish_after = outbox::PublishAfter::replicated;
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
