// Hashes of keys and ids. Pure.
#pragma once

#include <cstdint>
#include <outbox/event.hpp>
#include <string_view>

namespace outbox::event {

/// A hash of the ordering key over an unambiguous encoding of both parts; 0 if the event has no
/// key. A collision only makes two keys wait for each other.
[[nodiscard]] std::uint64_t key_hash(std::string_view aggregate_type,
                                     std::string_view aggregate_id) noexcept;

/// The ledger's hash of an id: splitmix64(hi ^ splitmix64(lo)), where hi and lo are the big-endian
/// halves. Its sums are stored, so it must never change.
[[nodiscard]] std::uint64_t id_hash(const EventId& id) noexcept;

}  // namespace outbox::event
