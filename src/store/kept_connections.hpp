// Connections that outlive the store that opened them, for a process that opens the same store
// again and again, such as the console: a new connection to PostgreSQL costs 20 ms until its server
// has read what it needs of the catalog.
//
//   KeptConnections kept;
//   {
//     const KeptConnections::Use use(kept);  // In each thread that opens stores.
//     ...
//   }
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"

namespace outbox::store {

/// Any thread may use it. It must outlive the stores that were opened while it was used.
class KeptConnections {
 public:
  /// A connection of a store's own kind.
  class Item {
   public:
    Item() = default;
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;
    Item(Item&&) = delete;
    Item& operator=(Item&&) = delete;
    virtual ~Item() = default;
  };

  /// While it lives, stores that this thread opens take from these connections and give back.
  class Use {
   public:
    explicit Use(KeptConnections& kept);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Use(Use&&) = delete;
    Use& operator=(Use&&) = delete;
    ~Use();
  };

  /// `idle`: one that nobody takes for so long is closed. `age`: one that is older is not kept.
  explicit KeptConnections(std::chrono::seconds idle = std::chrono::seconds(10),
                           std::chrono::seconds age = std::chrono::minutes(5));
  KeptConnections(const KeptConnections&) = delete;
  KeptConnections& operator=(const KeptConnections&) = delete;
  KeptConnections(KeptConnections&&) = delete;
  KeptConnections& operator=(KeptConnections&&) = delete;
  ~KeptConnections() = default;

  /// What this thread uses; nullptr if it uses none.
  [[nodiscard]] static KeptConnections* of_thread();

  using Time = std::chrono::steady_clock::time_point;
  struct Taken {
    std::unique_ptr<Item> item{};  ///< nullptr if there is none.
    Time opened{};
  };
  /// A connection to this address, the one that was given last.
  [[nodiscard]] Taken take(const std::string& address);
  void give(const std::string& address, Taken taken);

 private:
  struct Kept {
    std::string address;
    Taken taken;
    Time since;
  };

  void close_idle(const std::stop_token& stop);

  static constexpr std::size_t kMost = 16;

  const std::chrono::seconds idle_;
  const std::chrono::seconds age_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Kept> kept_ OUTBOX_GUARDED_BY(mutex_);
  std::jthread closer_;  ///< The last, since it uses the others.
};

}  // namespace outbox::store
