// The shop's relay: a process of its own with outbox/relay.hpp in it, for the demo to kill.
#include <chrono>
#include <fstream>
#include <outbox/relay.hpp>
#include <string>

#include "base/error.hpp"
#include "base/signals.hpp"
#include "demo/demo.hpp"
#include "subscription/spec.hpp"
#include "support/failure.hpp"

namespace outbox::demo {
namespace {

constexpr std::chrono::seconds kRelayGrace{15};
/// The status of a relay that a second signal ends.
constexpr int kRelayStatus = 4;

void deliver(RelayOptions options) {
  const Signals signals{kRelayStatus};
  const auto relay = test::must(Relay::create(std::move(options)));
  test::must(relay->start());
  signals.wait();
  (void)relay->stop(kRelayGrace);
}

}  // namespace

std::string relay_file(const std::string& store_url, const std::string& schema,
                       const SubscriptionSpec& spec) {
  return store_url + "\n" + schema + "\n" + spec.name + "\n" + subscription::to_json(spec) + "\n";
}

Status run_relay(const std::string& file) {
  RelayOptions options;
  std::string name;
  std::string spec;
  std::ifstream in(file);
  for (std::string* const line : {&options.store_url, &options.schema, &name, &spec}) {
    if (!std::getline(in, *line)) return fail(Errc::unavailable, "cannot read " + file);
  }
  OUTBOX_TRY(auto subscription, subscription::from_json(name, spec));
  options.subscriptions.push_back(std::move(subscription));
  return test::caught([&] { deliver(std::move(options)); });
}

}  // namespace outbox::demo
