#include "cli/held_back.hpp"

#include <fmt/format.h>

#include "base/units.hpp"
#include "cli/exit.hpp"

namespace outbox::cli {

std::vector<store::Hold> held_back(store::Store& store, const config::Loaded& loaded) {
  return store::holds_of(must(must(store.retention())->survey(loaded.config.relay.retention)));
}

bool is_over_quota(const store::Hold& hold, const config::Loaded& loaded) {
  return static_cast<std::size_t>(hold.bytes) > loaded.config.relay.quota;
}

std::string over_quota_text(const std::string& subscription, const store::Hold& hold,
                            const config::Loaded& loaded) {
  return fmt::format(
      "subscription {} holds back {} of history that could be removed, more than relay.quota = {} (hint: let it "
      "deliver; outbox prune shows what it holds)",
      subscription, format_size(static_cast<std::size_t>(hold.bytes)),
      format_size(loaded.config.relay.quota));
}

}  // namespace outbox::cli
