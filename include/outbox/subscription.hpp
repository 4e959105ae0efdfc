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
#include <cstdint>
#include <map>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/rate.hpp>
#include <outbox/time.hpp>
#include <string>
#include <vector>

namespace outbox {

/// Where a new subscription begins.
enum class Start : std::uint8_t {
  beginning,  ///< At the oldest event that is retained.
  now,        ///< At the next event.
};

/// What happens to an event that the destination rejects (docs/guide/operations.md).
enum class OnReject : std::uint8_t {
  /// It is set aside and tried again. Later events of its key wait behind it, all others go on.
  park,
  stop,  ///< The subscription stops at it until a person resumes it.
};

/// Why an event was set aside.
enum class ParkReason : std::uint8_t {
  rejected,   ///< The destination rejected it, or the sink refused it.
  failing,    ///< It failed while others succeeded.
  slow,       ///< It had no outcome while later events were delivered.
  culprit,    ///< Relays died while they sent it.
  behind,     ///< An earlier event of its key is parked.
  postponed,  ///< Nothing is at fault: its time has not come.
};
[[nodiscard]] const char* to_string(ParkReason reason) noexcept;

/// What happens to the key of an event that is dead.
enum class OnDead : std::uint8_t {
  proceed,  ///< Its later events are delivered. The setting's word is "continue".
  block,    ///< They wait until a person decides.
};

struct SubscriptionSpec {
  /// Letters, digits, '-', '_' and '.', at most 63 bytes.
  std::string name;
  /// Which sink: "http", "file" and so on (docs/reference/settings.md), or "custom" for one that
  /// the application passes to the Relay.
  std::string sink;
  /// Settings of that sink ("path", "brokers"). Which ones there are: docs/reference. ${env:NAME}
  /// and ${file:/PATH} in them are stored as they are and replaced where the relay runs, so that
  /// passwords need not be in the store; $${ is a literal ${.
  std::map<std::string, std::string> sink_settings{};
  /// The relays that serve this group share the work of its subscriptions. "custom" and "file" have
  /// a group of their own, custom:NAME and file:NAME. Default: empty, which is the group "default".
  std::string group{};
  /// Globs over event_type ('*' any run, '?' one character); an event matches when any does. Empty:
  /// all.
  std::vector<std::string> event_types{};
  /// Globs over aggregate_type. Empty: all.
  std::vector<std::string> aggregate_types{};
  /// Headers that must be there with exactly this value. Empty: not looked at.
  std::map<std::string, std::string> match_headers{};
  /// "raw" (payload as the body, attributes as headers), "json" (one envelope), "cloudevents"
  /// (binary mode), "cloudevents-json" (structured mode) or "debezium" (as its outbox event
  /// router). Default: raw.
  std::string format{"raw"};
  /// Options of that format. Which ones there are: docs/reference/formats.md
  std::map<std::string, std::string> format_options{};
  /// Template of the topic. Default: {aggregate_type|lower}.events
  std::string topic{"{aggregate_type|lower}.events"};
  /// Template of the message key. Default: {aggregate_id}
  std::string key{"{aggregate_id}"};
  /// Templates of further headers.
  std::map<std::string, std::string> headers{};
  /// At most so many events of all relays together, replays and retries included. Each relay sends
  /// the part that its lanes make up. Default: no limit.
  Rate rate{};
  /// A subscription that exists already stays where it is. Default: beginning.
  Start start{Start::beginning};
  /// Default: park.
  OnReject on_reject{OnReject::park};
  /// Default: proceed.
  OnDead on_dead{OnDead::proceed};
  /// So often it is tried before it is dead. Unit: attempts, the first one included. Default: 10.
  std::size_t max_attempts{10};
  /// The pauses before the second attempt, the third and so on, at most 30 days each; their number
  /// then decides instead of max_attempts. Empty: retry_base * retry_factor ^ n, at most retry_cap.
  /// Default: empty.
  Delays delays{};
  /// Default: 1 s.
  std::chrono::milliseconds retry_base{1000};
  /// Default: 2.
  std::size_t retry_factor{2};
  /// Default: 5 min.
  std::chrono::milliseconds retry_cap{300'000};
  /// Each pause is this much longer or shorter at random. Unit: percent, 0 to 50. Default: 20.
  std::size_t retry_jitter{20};
  /// With so many parked events, dead ones that block no key not counted, the subscription delivers
  /// no new ones until there are fewer. Unit: events. Default: 100000.
  std::size_t max_waiting{100'000};

  bool operator==(const SubscriptionSpec&) const = default;
};

}  // namespace outbox
