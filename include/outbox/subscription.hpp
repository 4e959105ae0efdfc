// outbox/subscription.hpp: what a subscription is: which events go where, and how they look there.
//
//   outbox::SubscriptionSpec orders{.name = "orders", .sink = "file", .event_types = {"Order*"}};
//   orders.sink_settings["path"] = "/var/lib/shop/orders.jsonl";
//
// Threads: values; Const methods from any thread.
// Lifetime: owns its strings.
// Errors: validate() names the field that is wrong.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

namespace outbox {

struct SubscriptionSpec {
  /// Letters, digits, '-', '_' and '.', at most 63 bytes.
  std::string name;
  /// Which sink: "http", "file" and so on (docs/reference/settings.md), or "custom" for one that the application passes to the Relay.
  std::string sink;
  /// Settings of that sink ("path", "brokers"). Which ones there are: docs/reference. ${env:NAME} and ${file:/PATH} in them are stored as
  /// they are and replaced where the relay runs, so that passwords need not be in the store; $${ is a literal ${.
  std::map<std::string, std::string> sink_settings{};
  /// The relays that serve this group share the work of its subscriptions. "custom" and "file" have a group of their own, custom:NAME
  /// and file:NAME. Default: empty, which is the group "default".
  std::string group{};
  /// Globs over event_type ('*' any run, '?' one character); an event matches when any does. Empty: all.
  std::vector<std::string> event_types{};
  /// Globs over aggregate_type. Empty: all.
  std::vector<std::string> aggregate_types{};
  /// Headers that must be there with exactly this value. Empty: not looked at.
  std::map<std::string, std::string> match_headers{};
  /// "raw" (payload as the body, attributes as headers), "json" (one envelope), "cloudevents" (binary mode), "cloudevents-json"
  /// (structured mode) or "debezium" (as its outbox event router). Default: raw.
  std::string format{"raw"};
  /// Options of that format. Which ones there are: docs/reference/formats.md
  std::map<std::string, std::string> format_options{};
  /// Template of the topic. Default: {aggregate_type|lower}.events
  std::string topic{"{aggregate_type|lower}.events"};
  /// Template of the message key. Default: {aggregate_id}
  std::string key{"{aggregate_id}"};
  /// Templates of further headers.
  std::map<std::string, std::string> headers{};
  /// At most so many events: "200/s", "30/min", "1000/h", counted over all relays, replays and retries included; each relay sends its part by
  /// the lanes that it has. Default: empty, no limit.
  std::string rate{};
  /// Where a new subscription begins: "beginning" (of what is retained) or "now". Of one that exists already it is not
  /// looked at. Default: beginning.
  std::string start{"beginning"};

  // What becomes of an event that the destination rejects (docs/guide/operations.md).

  /// "park": it is set aside and tried again, later events of its key wait behind it, all others go on. "stop": the
  /// subscription stops at it until a person resumes it. Default: park.
  std::string on_reject{"park"};
  /// What happens to its key once it is dead: "continue", or "block" until a person decides. Default: continue.
  std::string on_dead{"continue"};
  /// So often it is tried before it is dead. Unit: attempts, the first one included. Default: 10.
  std::size_t max_attempts{10};
  /// The pauses before the second attempt, the third and so on ("30s", "5min"); their number then decides instead of
  /// max_attempts. Empty: retry_base * retry_factor ^ n, at most retry_cap. Default: empty.
  std::vector<std::string> delays{};
  /// Default: 1 s.
  std::chrono::milliseconds retry_base{1000};
  /// Default: 2.
  std::size_t retry_factor{2};
  /// Default: 5 min.
  std::chrono::milliseconds retry_cap{300'000};
  /// Each pause is this much longer or shorter at random. Unit: percent, 0 to 50. Default: 20.
  std::size_t retry_jitter{20};
  /// With so many parked events, dead ones that block no key not counted, the subscription delivers no new ones until there
  /// are fewer. Unit: events. Default: 100000.
  std::size_t max_waiting{100'000};

  bool operator==(const SubscriptionSpec&) const = default;
};

}  // namespace outbox
