// The window of a subscription: the events fetched and not settled, of all its strands. The pump's
// thread adds to it, the loop's thread removes.
#pragma once

#include <atomic>
#include <cstddef>

#include "store/delivery.hpp"

namespace outbox::relay {

class Window {
 public:
  struct Limits {
    std::size_t events{10000};
    std::size_t bytes{std::size_t{16} << 20U};
    std::size_t page_events{1000};
    std::size_t page_bytes{std::size_t{4} << 20U};
  };

  explicit Window(Limits limits) : limits_(limits) {}

  void add(const store::Page& page) {
    events_.fetch_add(page.events.size(), std::memory_order_relaxed);
    bytes_.fetch_add(page.bytes, std::memory_order_relaxed);
  }
  void remove(std::size_t events, std::size_t bytes) {
    events_.fetch_sub(events, std::memory_order_relaxed);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t events() const { return events_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  /// Whether there is room for `pages` more pages. An empty window has room for any page.
  [[nodiscard]] bool has_room(std::size_t pages) const {
    const std::size_t held = events();
    return held == 0 || (held + pages * limits_.page_events <= limits_.events &&
                         bytes() + pages * limits_.page_bytes <= limits_.bytes);
  }
  [[nodiscard]] bool is_half(std::size_t events, std::size_t bytes) const {
    return events >= (limits_.events + 1) / 2 || bytes >= (limits_.bytes + 1) / 2;
  }

 private:
  const Limits limits_;
  std::atomic<std::size_t> events_{0};
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace outbox::relay
