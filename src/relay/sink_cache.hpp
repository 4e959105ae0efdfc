// Sinks live longer than a tenure: they are kept by the name of their subscription, with what they acked and nobody settled.
// So are the loops that are still in a call of their sink, until it returns. The keeper's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "relay/subscription_loop.hpp"
#include "store/store.hpp"

namespace outbox::relay {

class SinkCache {
 public:
  SinkCache() = default;
  SinkCache(const SinkCache&) = delete;
  SinkCache& operator=(const SinkCache&) = delete;
  SinkCache(SinkCache&&) = delete;
  SinkCache& operator=(SinkCache&&) = delete;
  /// Leaves the loops behind that are still in a call.
  ~SinkCache();

  /// The application's own sinks, for subscriptions with sink = "custom".
  void put_custom(const std::string& name, std::unique_ptr<Sink> sink);
  [[nodiscard]] Result<RetainedSink> take(const store::SubscriptionRow& row);
  /// A loop that has ended, or was abandoned in a call of its sink.
  void put_back(std::unique_ptr<SubscriptionLoop> loop);
  /// Another outbox: what the sinks acked, and the settings they were made with, mean nothing there.
  void forget_outbox();
  /// Releases what the sinks hold at their destinations, since another relay may be about to use it. open() may follow.
  void close_all();
  void close(const std::string& name);

 private:
  struct Entry {
    RetainedSink retained;
    // Whose settings the sink was made with; 0: it was never used.
    std::int32_t subscription{0};
    std::int32_t config_version{0};

    void forget_outbox();
  };
  struct Stuck {
    std::unique_ptr<SubscriptionLoop> loop;
    bool of_former_outbox{false};
  };
  Entry& retain(SubscriptionLoop& loop);
  void collect_returned();

  std::map<std::string, Entry> entries_;
  std::vector<Stuck> stuck_;
};

}  // namespace outbox::relay
