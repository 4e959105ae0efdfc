// Named points at which a relay or a consumer of the tests kills or suspends itself. Only
// outbox_test_relay and outbox_test_consumer have them. They stand around the interfaces of store,
// sink and source, so the product contains none.
#pragma once

#include <array>
#include <string_view>

namespace outbox::test {

/// Those of a relay. They are "before" and "after" a call. What a call sends to the store is
/// committed when it returns.
inline constexpr std::array kFaultPoints{
    "register.before",    "register.after",     // the relay gets its row and lease
    "heartbeat.before",   "heartbeat.after",    // the lease is renewed
    "claim.before",       "claim.after",        // lanes become its own
    "handover.before",    "handover.after",     // lanes are given to another relay
    "leave.before",       "leave.after",        // all lanes are given back at the end
    "page.before",        "page.after",         // events are read
    "barrier.before",     "barrier.after",      // the events would survive a crash
    "open.before",        "open.after",         // the sink is opened
    "send.before",        "send.within",        // half of a batch is at the destination
    "send.after",         "ack.before",         // all of the batch is, and the relay learns of it
    "ack.after",          "settle.before",      // the relay knows, and nothing is written
    "settle.after",                             // progress is written
    "park.before",        "park.after",         // rejected events are set aside
    "retry.before",       "retry.after",        // rejected events were sent again
    "maintenance.before", "maintenance.after",  // partitions are made
    "removal.before",     "removal.after",      // delivered history is removed
    "tidy.before",        "tidy.after",         // so is what is left of its events
};

/// Those of a consumer, in the order of a batch.
inline constexpr std::array kConsumerFaultPoints{
    "receive.after",                            // messages are in its hands
    "commit.before",                            // their rows and tasks are written
    "commit.after",                             // and committed
    "acknowledge.before", "acknowledge.after",  // the broker, or its client, learns of it
};

/// Marks that the point is reached. If OUTBOX_FAULT_POINT is "POINT N SIGNAL" and this is the Nth
/// time, writes POINT to the file OUTBOX_FAULT_FILE, and then dies or stops by the signal.
void fault_point(std::string_view point);

}  // namespace outbox::test
