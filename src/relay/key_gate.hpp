// The keys of a subscription that have parked events. The stream sends none of their events, but
// parks them behind the others. The strands and the retries share the gate, which only the loop's
// thread uses. Pure. docs/design/parking.md, "Blocked keys".
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "relay/late_sends.hpp"
#include "store/parked.hpp"

namespace outbox::relay {

/// The gate's key of an event whose store::parked_key() is `number`. It is 0 if the event has no
/// key.
[[nodiscard]] constexpr std::uint64_t gate_key(std::uint64_t number, std::int64_t seq) {
  return number == static_cast<std::uint64_t>(seq) ? 0 : number;
}

class KeyGate {
 public:
  /// Whether the key, which is an event::key_hash(), is blocked. 0 stands for no key and is never
  /// blocked. Two keys of one hash block each other.
  [[nodiscard]] bool blocked(std::uint64_t key) const { return keys_.contains(key); }
  [[nodiscard]] bool empty() const { return keys_.empty(); }
  /// How many keys are blocked.
  [[nodiscard]] std::size_t keys() const { return keys_.size(); }
  /// The number of events that are parked and not dead, or about to be. After a person's change has
  /// made results void, the number may be too small until replace_stored().
  [[nodiscard]] std::size_t live() const { return stored_live_ + open_live_; }

  /// The store has a row of this key.
  void found(std::uint64_t key) {
    if (key == 0) return;
    const auto [entry, is_new] = keys_.try_emplace(key);
    entry->second.stored = true;
    if (is_new) entry->second.may_be_in_flight = true;
  }
  /// Whether the stream may have events of this key in flight that it sent before the key was
  /// found.
  [[nodiscard]] bool may_be_in_flight(std::uint64_t key) const {
    const auto entry = keys_.find(key);
    return entry != keys_.end() && entry->second.may_be_in_flight;
  }
  /// The stream has no event of this key in flight, and sends none.
  void is_not_in_flight(std::uint64_t key) {
    const auto entry = keys_.find(key);
    if (entry != keys_.end()) entry->second.may_be_in_flight = false;
  }
  /// An event of this key is parked as soon as its settlement is written. A dead one holds its key
  /// until then: another relay may still deliver it.
  void park(std::uint64_t key, bool live) {
    if (live) ++open_live_;
    if (key != 0) ++keys_[key].unwritten;
  }
  /// An event that was given to park() is written. Its key has a row now, unless released() says
  /// otherwise.
  void written(std::uint64_t key, bool live) {
    if (live && open_live_ > 0) {
      --open_live_;
      ++stored_live_;
    }
    const auto entry = keys_.find(key);
    if (entry == keys_.end()) return;
    if (entry->second.unwritten > 0) --entry->second.unwritten;
    entry->second.stored = true;
  }
  /// The store has no row of this key any more.
  void released(std::uint64_t key) {
    const auto entry = keys_.find(key);
    if (entry == keys_.end()) return;
    entry->second.stored = false;
    if (entry->second.unwritten == 0) keys_.erase(entry);
  }
  /// An event was delivered, discarded or is dead, and that is written.
  void left() {
    if (stored_live_ > 0) --stored_live_;
  }
  /// Replaces what is known of the store after people have changed it. Everything that was written
  /// before `all` was read must have been told here.
  void replace_stored(const store::ParkedKeys& all) {
    for (auto& [key, entry] : keys_) entry.stored = false;
    for (const auto& key : all.keys) found(key.key);
    std::erase_if(keys_, [](const auto& entry) {
      return !entry.second.stored && entry.second.unwritten == 0;
    });
    stored_live_ = all.live;
  }

  LateSends late;

 private:
  struct Entry {
    bool stored{false};
    bool may_be_in_flight{false};
    std::size_t unwritten{0};  ///< How many events of the key are about to be parked.
  };
  std::unordered_map<std::uint64_t, Entry> keys_;
  std::size_t stored_live_{0};
  std::size_t open_live_{0};
};

}  // namespace outbox::relay
