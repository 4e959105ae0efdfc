// How often something can be done in a second by several clients at once.
#pragma once

#include <functional>
#include <vector>

namespace outbox::bench {

inline constexpr int kAccounts = 10000;
/// The turns of each side. They alternate, so that a slow phase of the machine affects both sides.
inline constexpr int kTurns = 20;

/// Does one transaction with this account.
using Client = std::function<void(int account)>;
/// Clients that work at the same time, each in a thread of its own.
using Side = std::vector<Client>;

/// Transactions per second of each side, with random accounts: the medians of `repeats` times
/// kTurns turns, which take `seconds` in each repeat.
[[nodiscard]] std::vector<double> rates(const std::vector<Side>& sides, int repeats,
                                        double seconds);

}  // namespace outbox::bench
