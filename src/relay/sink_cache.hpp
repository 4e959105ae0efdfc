// Sinks outlive a tenure: they are kept by the name of their subscription, with the acked events
// that are not settled. Loops whose sink does not return from a call are kept until it does. Only
// the thread of the tenure loop uses this.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <outbox/relay.hpp>
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
  /// Leaks the loops whose sink still does not return.
  ~SinkCache();

  /// The application's own sinks, for subscriptions with sink = "custom".
  void put_custom(const std::string& name, std::unique_ptr<Sink> sink);
  /// Makes the sinks of the other custom subscriptions of this group.
  void put_custom(const std::string& group, Relay::MakeSink make);
  [[nodiscard]] Result<RetainedSink> take(const store::SubscriptionRow& row);
  /// Puts back a sink that was taken and not used, because the subscription could not start.
  void put_back(const store::SubscriptionRow& row, RetainedSink sink);
  /// Takes the sink of a loop that has ended, or keeps a loop that was abandoned because its sink
  /// does not return.
  void put_back(std::unique_ptr<SubscriptionLoop> loop);
  /// The store has another outbox: what the sinks acked, and the versions of their settings, are
  /// void.
  void forget_outbox();
  /// Lanes of the group had another owner meanwhile: what became of their parked events is no
  /// longer known here.
  void forget_retries(const std::string& group);
  /// Closes the sinks, because another relay may need what they hold at their destinations. open()
  /// may follow.
  void close_all();
  void close(const std::string& name);

 private:
  struct Entry {
    RetainedSink retained;
    // The settings that the sink was made with; 0 if it was never used.
    std::int32_t subscription{0};
    std::int32_t config_version{0};
    std::string group{};

    void forget_outbox();
  };
  struct Stuck {
    std::unique_ptr<SubscriptionLoop> loop;
    bool of_former_outbox{false};
    bool of_former_lanes{false};
  };
  Entry& retain(SubscriptionLoop& loop);
  void collect_returned();

  std::map<std::string, Entry> entries_;
  std::map<std::string, Relay::MakeSink> makers_;  ///< By group.
  std::vector<Stuck> stuck_;
};

}  // namespace outbox::relay
