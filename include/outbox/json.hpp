// outbox/json.hpp: the payloads of all types that nlohmann::json converts, by their to_json() and
// from_json() or by NLOHMANN_DEFINE_TYPE_*. No other header of outbox needs nlohmann/json.
//
//   struct MakeReport {
//     static constexpr const char* task_type = "report.make";
//     std::string month;
//     NLOHMANN_DEFINE_TYPE_INTRUSIVE(MakeReport, month)
//   };
//   tx.enqueue(MakeReport{"2026-10"}, {.queue = "reports"});
//
// Threads: values.
// Lifetime: values.
// Errors: write() passes on what to_json() throws. What from_json() throws is the Error of read().
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <outbox/error.hpp>
#include <outbox/payload.hpp>
#include <string>
#include <string_view>

namespace outbox {

template <class T>
requires requires(nlohmann::json& json, const T& from, T& to) {
  to_json(json, from);
  from_json(json, to);
}
struct Payload<T> {
  static std::string write(const T& value) { return nlohmann::json(value).dump(); }
  static Result<T> read(std::string_view payload) try {
    return nlohmann::json::parse(payload).template get<T>();
  } catch (const std::exception& error) {
    return unexpected(Error{.code = Errc::invalid_argument,
                            .remedy = Remedy::fix,
                            .effect = Effect::none,
                            .message = error.what(),
                            .hint = {},
                            .origin = {}});
  }
};

}  // namespace outbox
