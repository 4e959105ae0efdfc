// Delivers a million events to a destination that the benchmarks do not know, through its harness.
// Unless this is a soak, a tenth of them must do: these servers are slow.
#include <cstddef>
#include <memory>
#include <utility>

#include "conformance/sink/server_harness.hpp"
#include "integration/relay/one_in_ten.hpp"

namespace outbox::test {
namespace {

TEST_F(OneInTen, arrives_whole_and_in_order_at_this_server) {
  const ServerHarnessKind kind = server_harness_kind();
  const std::shared_ptr<ServerHarness> harness = kind.make();
  if (!harness) GTEST_SKIP() << kind.needs;
  SubscriptionSpec spec;
  spec.name = kind.name;
  spec.sink = harness->sink();
  spec.sink_settings = harness->settings(harness->port());
  std::size_t seen = 0;
  const auto read = [harness, &seen](const std::function<void(std::string_view)>& each) {
    const std::vector<Arrived> arrived = harness->delivered();
    for (; seen < arrived.size(); ++seen) each(arrived[seen].body);
  };
  add(std::move(spec), read, harness->must_be_emptied());
  constexpr long kMostMiB = 64;
  expect_one_in_ten(soak_factor() > 1 ? 1'000'000 : 100'000, kMostMiB);
}

}  // namespace
}  // namespace outbox::test
