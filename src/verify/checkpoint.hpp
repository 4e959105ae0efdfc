// How far the continuous verification of a subscription has come, as text for the store.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "verify/ledger_walk.hpp"

namespace outbox::verify {

struct Checkpoint {
  /// The identity of the outbox (store::Catalog::identity()). In another one the rest is void.
  std::string outbox;
  std::vector<Compared> lanes{};  ///< Empty: nothing was compared.
};

[[nodiscard]] std::string to_text(const Checkpoint& checkpoint);
/// An empty text is an empty checkpoint.
[[nodiscard]] Result<Checkpoint> read_checkpoint(std::string_view text);

}  // namespace outbox::verify
