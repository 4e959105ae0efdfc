// Loads a configuration file. Either it is loaded, or every problem says what is wrong and where. A
// subscription is the same after the store.
#include <fstream>
#include <string>

#include "config/load.hpp"
#include "fuzz/fuzz.hpp"
#include "subscription/spec.hpp"
#include "support/temp_dir.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outbox;
  static const test::TempDir folder;
  static const std::string path = folder.file("outbox.toml");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << fuzz::to_text(data, size);
  const auto loaded =
      config::load({.file = path, .resolve_subscriptions = false, .thorough = true});
  if (!loaded) {
    OUTBOX_PROPERTY(!loaded.error().empty());
    for (const auto& problem : loaded.error()) {
      OUTBOX_PROPERTY(!problem.what.empty() && !problem.where.empty());
      OUTBOX_PROPERTY(problem.at.line >= 0 && problem.at.column >= 0);
    }
    return 0;
  }
  for (const auto& entry : loaded->entries) {
    OUTBOX_PROPERTY(!entry.key.empty() && !entry.origin.empty());
    (void)entry.value.dump();  // `config show --json` does so, too
  }
  for (auto spec : loaded->config.relay.subscriptions) {
    auto stored = subscription::from_json(spec.name, subscription::to_json(spec));
    OUTBOX_PROPERTY(stored.has_value());
    stored->start = spec.start;
    OUTBOX_PROPERTY(*stored == spec);
  }
  return 0;
}
