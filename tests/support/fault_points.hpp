// Named points at which a relay of the tests kills or suspends itself. Only outbox_test_relay has
// them: they stand around the interfaces of store and sink, so the product contains none.
#pragma once

#include <array>
#include <string_view>

namespace outbox::test {

/// "before" and "after" a call; what is sent to the store is committed when it returns.
inline constexpr std::array kFaultPoints{
    "register.before",    "register.after",     // its row and lease
    "heartbeat.before",   "heartbeat.after",    // the lease is renewed
    "claim.before",       "claim.after",        // lanes become its own
    "handover.before",    "handover.after",     // lanes are given to another relay
    "leave.before",       "leave.after",        // all are given back at the end
    "page.before",        "page.after",         // events are read
    "barrier.before",     "barrier.after",      // they would survive a crash
    "open.before",        "open.after",         // the sink
    "send.before",        "send.within",        // half of a batch is at the destination
    "send.after",         "ack.before",         // all of it, and the relay learns of it
    "ack.after",          "settle.before",      // it knows, and nothing is written
    "settle.after",                             // progress is written
    "park.before",        "park.after",         // rejected events are set aside
    "retry.before",       "retry.after",        // they were sent again
    "maintenance.before", "maintenance.after",  // partitions
    "removal.before",     "removal.after",      // a partition of delivered history
    "tidy.before",        "tidy.after",         // what is left of removed events
};

/// The point is reached. Dies or stops there if OUTBOX_FAULT_POINT is "POINT N SIGNAL" and this is
/// the Nth time; writes POINT to the file OUTBOX_FAULT_FILE first.
void fault_point(std::string_view point);

}  // namespace outbox::test
