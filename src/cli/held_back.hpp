// History that could be removed but for a subscription: what status and doctor say of it.
#pragma once

#include <string>

#include "cli/context.hpp"
#include "store/history.hpp"

namespace outbox::cli {

/// What each subscription holds back under the configured retention.
[[nodiscard]] std::vector<store::Hold> held_back(store::Store& store, const config::Loaded& loaded);
[[nodiscard]] bool is_over_quota(const store::Hold& hold, const config::Loaded& loaded);
/// A problem for a person, with what to do.
[[nodiscard]] std::string over_quota_text(const std::string& subscription, const store::Hold& hold,
                                          const config::Loaded& loaded);

}  // namespace outbox::cli
