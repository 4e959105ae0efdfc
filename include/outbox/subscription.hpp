// outbox/subscription.hpp: what a subscription is: which events go where, and how they look there.
//
//   outbox::SubscriptionSpec orders{.name = "orders", .sink = "file", .event_types = {"Order*"}};
//   orders.sink_settings["path"] = "/var/lib/shop/orders.jsonl";
//
// Threads: values; Const methods from any thread.
// Lifetime: owns its strings.
// Errors: validate() names the field that is wrong.
#pragma once

#include <map>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

namespace outbox {

struct SubscriptionSpec {
  /// Letters, digits, '-', '_' and '.', at most 63 bytes.
  std::string name;
  /// Which sink: "file", "stdout", "null", "kafka", or "custom" for one that the application passes to the Relay.
  std::string sink;
  /// Settings of that sink ("path", "brokers"). Which ones there are: docs/reference.
  std::map<std::string, std::string> sink_settings{};
  /// Globs over event_type ('*' any run, '?' one character); an event matches when any does. Empty: all.
  std::vector<std::string> event_types{};
  /// Globs over aggregate_type. Empty: all.
  std::vector<std::string> aggregate_types{};
  /// Headers that must be there with exactly this value. Empty: not looked at.
  std::map<std::string, std::string> match_headers{};
  /// "raw" (payload as the body, attributes as headers) or "json" (one envelope). Default: raw.
  std::string format{"raw"};
  /// Template of the topic. Default: {aggregate_type|lower}.events
  std::string topic{"{aggregate_type|lower}.events"};
  /// Template of the message key. Default: {aggregate_id}
  std::string key{"{aggregate_id}"};
  /// Templates of further headers.
  std::map<std::string, std::string> headers{};
  /// Where a new subscription begins: "beginning" (of what is retained) or "now". Of one that exists already it is not
  /// looked at. Default: beginning.
  std::string start{"beginning"};

  bool operator==(const SubscriptionSpec&) const = default;
};

}  // namespace outbox
