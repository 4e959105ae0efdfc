// A service that relays by itself, to a destination of its own: no second process, no configuration
// file. usage: relay_inside STORE_URL, for example sqlite:shop.db. Ends when everything is
// delivered.
#include <cstdio>
#include <memory>
#include <outbox/relay.hpp>
#include <outbox/sink.hpp>
#include <string>

namespace {

/// One blocking function is enough. A destination that can fail says so in `failure`, and returns
/// how many it took.
class Printer final : public outbox::BatchSink {
 public:
  outbox::SinkTraits traits() const noexcept override {
    return {.name = "printer", .gapless = true};
  }
  outbox::Status open() override { return {}; }
  void close() noexcept override { (void)std::fflush(stdout); }

 protected:
  std::size_t deliver(std::span<const outbox::Message> batch,
                      outbox::Outcome& /*failure*/) override {
    for (const outbox::Message& message : batch) {
      (void)std::printf("%s %s\n", std::string(message.event->event_type).c_str(),
                        std::string(message.body).c_str());
    }
    return batch.size();
  }
};

int complain(const outbox::Error& error) {
  (void)std::fprintf(stderr, "%s\n", error.text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  outbox::RelayOptions options{.store_url = argc > 1 ? argv[1] : "sqlite:shop.db"};
  options.subscriptions = {{.name = "printer", .sink = "custom"}};
  auto relay = outbox::Relay::create(options);
  if (!relay) return complain(relay.error());
  if (auto used = (*relay)->use("printer", std::make_unique<Printer>()); !used)
    return complain(used.error());
  // A service would call start(), go about its business, and stop() at its end.
  const auto done = (*relay)->run_once(std::chrono::seconds(30));
  if (!done) return complain(done.error());
  if (!done->settled) (void)std::fprintf(stderr, "%s\n", done->reason.c_str());
  return done->settled ? 0 : 1;
}
