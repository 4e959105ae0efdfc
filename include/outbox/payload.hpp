// outbox/payload.hpp: events and tasks as types of yours. The name of the event or task stands in
// the type, so that the two programs that share it cannot disagree, and a value of another type
// does not compile.
//
//   struct OrderPlaced {
//     static constexpr const char* aggregate_type = "order";
//     static constexpr const char* event_type = "OrderPlaced";
//     std::int64_t cents;
//   };
//   tx.enqueue(OrderPlaced{.cents = 1250}, "42");   // the order's id: its events stay in order
//
//   struct MakeReport {
//     static constexpr const char* task_type = "report.make";
//     std::string month;
//   };
//   tx.enqueue(MakeReport{"2026-10"}, {.queue = "reports", .key = "customer-42"});
//   handlers.on<MakeReport>([](const MakeReport& report, const outbox::TaskRun& run) { ... });
//
// outbox/json.hpp writes and reads every type that nlohmann::json converts. For another format
// specialise Payload.
//
// Threads: values.
// Lifetime: values.
// Errors: to_event() and to_task() pass on what Payload::write() throws.
#pragma once

#include <concepts>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/task.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace outbox {

/// How a value of yours becomes a payload, and a payload becomes a value. A task whose payload
/// cannot be read is dead at once.
///
///   template <> struct outbox::Payload<MakeReport> {
///     static std::string write(const MakeReport& report);
///     static outbox::Result<MakeReport> read(std::string_view payload);
///   };
template <class T>
struct Payload;

template <>
struct Payload<std::string_view> {
  static std::string write(std::string_view payload) { return std::string(payload); }
  static Result<std::string_view> read(std::string_view payload) { return payload; }
};

template <class T>
concept TypedEvent = requires(const T& value) {
  { T::aggregate_type } -> std::convertible_to<std::string>;
  { T::event_type } -> std::convertible_to<std::string>;
  { Payload<T>::write(value) } -> std::same_as<std::string>;
};

template <class T>
concept TypedTask = requires(const T& value) {
  { T::task_type } -> std::convertible_to<std::string>;
  { Payload<T>::write(value) } -> std::same_as<std::string>;
};

/// The event whose payload is the value. An empty `aggregate_id` means that it has no order.
template <TypedEvent T>
[[nodiscard]] Event to_event(const T& value, std::string aggregate_id) {
  return {.aggregate_type = T::aggregate_type,
          .aggregate_id = std::move(aggregate_id),
          .event_type = T::event_type,
          .payload = Payload<T>::write(value)};
}

/// The task whose payload is the value. `rest` gives everything but its type and payload.
template <TypedTask T>
[[nodiscard]] Task to_task(const T& value, Task rest = {}) {
  rest.type = T::task_type;
  rest.payload = Payload<T>::write(value);
  return rest;
}

}  // namespace outbox
