// The keys of a subscription that have parked events: the stream sends none of their events, it
// parks them behind. Shared by the strands and the retries; the loop's thread only. Pure.
// docs/design/parking.md, "Blocked keys".
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "relay/late_sends.hpp"
#include "store/parked.hpp"

namespace outbox::relay {

/// The key in the gate of an event with this number; see store::parked_key(). 0: it has no key.
[[nodiscard]] constexpr std::uint64_t gate_key(std::uint64_t number, std::int64_t seq) {
  return number == static_cast<std::uint64_t>(seq) ? 0 : number;
}

class KeyGate {
 public:
  /// `key`: event::key_hash(); 0 is no key and never blocked. Two keys of one hash block each
  /// other.
  [[nodiscard]] bool blocked(std::uint64_t key) const { return keys_.contains(key); }
  [[nodiscard]] bool empty() const { return keys_.empty(); }
  /// How many are blocked.
  [[nodiscard]] std::size_t keys() const { return keys_.size(); }
  /// Events that are parked and not dead, written or about to be. Of results that a person's change
  /// made void some too few, until replace_stored().
  [[nodiscard]] std::size_t live() const { return stored_live_ + open_live_; }

  /// The store has a row of this key.
  void found(std::uint64_t key) {
    if (key == 0) return;
    const auto [entry, is_new] = keys_.try_emplace(key);
    entry->second.stored = true;
    if (is_new) entry->second.may_be_in_flight = true;
  }
  /// The stream may have events of this key in flight, which it sent before the key was found.
  [[nodiscard]] bool may_be_in_flight(std::uint64_t key) const {
    const auto entry = keys_.find(key);
    return entry != keys_.end() && entry->second.may_be_in_flight;
  }
  /// The stream has none in flight, and sends no more of them.
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
  /// It is written. Whether its key has a row now is what released() tells.
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
  /// What the store has, when everything that was written before it was read was told here: people
  /// have changed it.
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
    std::size_t unwritten{0};  ///< Events of it that are about to be parked.
  };
  std::unordered_map<std::uint64_t, Entry> keys_;
  std::size_t stored_live_{0};
  std::size_t open_live_{0};
};

}  // namespace outbox::relay
