// What became of the events that a subscription has set aside.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>

#include "store/ledger_reader.hpp"
#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

/// In the transaction that is open.
[[nodiscard]] Status add_parked(Connection& connection, std::int32_t subscription,
                                ParkedLedger& ledger, const VisitParked& visit = {});

}  // namespace outbox::store::postgres
