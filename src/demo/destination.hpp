// Where the events go, and what is there: read back by the demo itself, from the first message on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/subscription.hpp>
#include <string>

#include "demo/order.hpp"

namespace outbox::demo {

/// Reads a destination from its beginning, further with each call.
class Reading {
 public:
  using Each = std::function<void(const std::optional<Order>&)>;

  Reading() = default;
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  Reading(Reading&&) = delete;
  Reading& operator=(Reading&&) = delete;
  virtual ~Reading() = default;

  /// Calls `each` for what has arrived since the last call, in order; with none for what cannot be read.
  [[nodiscard]] virtual Status next(const Each& each) = 0;
};

class Destination {
 public:
  Destination() = default;
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  Destination(Destination&&) = delete;
  Destination& operator=(Destination&&) = delete;
  virtual ~Destination() = default;

  /// Makes what must be there before something can be sent.
  [[nodiscard]] virtual Status open() = 0;
  /// A subscription that delivers here.
  [[nodiscard]] virtual SubscriptionSpec subscription() const = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Reading>> read() const = 0;
  /// Removes what open() made.
  [[nodiscard]] virtual Status clear() = 0;
  /// For people.
  [[nodiscard]] virtual std::string place() const = 0;
};

inline constexpr const char* kSubscription = "demo";

[[nodiscard]] std::unique_ptr<Destination> make_file_destination(std::string path);
#ifdef OUTBOX_WITH_KAFKA
/// A topic of its own, with some partitions.
[[nodiscard]] std::unique_ptr<Destination> make_kafka_destination(std::string brokers,
                                                                  std::string topic);
#endif

}  // namespace outbox::demo
