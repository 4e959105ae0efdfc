// What a relay writes about replays, in its transaction.
#pragma once

#include <outbox/error.hpp>
#include <span>

#include "store/replay.hpp"
#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

[[nodiscard]] Status settle_replays(Connection& connection,
                                    std::span<const ReplayProgress> replays);

}  // namespace outbox::store::sqlite
