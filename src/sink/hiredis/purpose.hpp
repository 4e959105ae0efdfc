// What a kind of sink does on a Redis server: its script for each event, and what people are told.
#pragma once

#include <outbox/error.hpp>
#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sink/inspection.hpp"

namespace outbox::sink::hiredis {

/// What people can do about an error, where kinds of sinks differ.
struct Hints {
  const char* memory;    ///< For reaching maxmemory.
  const char* rights;    ///< For a right that the sink's user lacks.
  const char* type;      ///< For an existing key of another type.
  const char* commands;  ///< For a command that the server lacks.
  const char* refused;  ///< For an event that the script refuses (kRefused); "" if it refuses none.
};

/// What happens to events when memory is full.
struct Eviction {
  const char* any_key;        ///< For maxmemory-policy allkeys-...
  const char* expiring_keys;  ///< For maxmemory-policy volatile-...
};

/// The code of a script's error that says that the event itself is at fault.
inline constexpr std::string_view kRefused = "OUTBOX";

struct Purpose {
  std::string sink;  ///< "redis", with which errors and names of settings begin.
  std::string_view attribute_prefix;
  /// The Lua script that runs for each event, with the arguments of a Call. It replies
  ///   a number: the event was added now or before;
  ///   a string: the event was added, but what follows must wait, for this reason;
  ///   an error: the event was not added. The code kRefused blames the event.
  const char* script;
  /// A command that writes but leaves nothing, to find out before an event is sent that the memory
  /// is full, the disk fails, or a right is missing. Empty if there is none.
  std::vector<std::string> trial;
  std::string duplicates;  ///< As in Inspection, like `order`.
  std::string order;
  std::vector<Weakness> weaknesses;  ///< Weaknesses of the sink's own settings.
  Hints hints;
  Eviction eviction;
};

/// The commands for one event. The views are valid until the next call is asked for, and as long as
/// the message and the hash are.
struct Call {
  using Arguments = std::span<const std::string_view>;

  Arguments arguments;  ///< The arguments of EVALSHA.
  std::string place;    ///< Where the event goes, for people: "stream orders".
  /// A command that runs before the script. If it fails, the event is in doubt although the script
  /// succeeded. Empty if there is none.
  Arguments first{};
};

/// Threads: One thread at a time.
class Calls {
 public:
  Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  Calls(Calls&&) = delete;
  Calls& operator=(Calls&&) = delete;
  virtual ~Calls() = default;

  /// Returns an error if the event is at fault.
  [[nodiscard]] virtual Result<Call> call(const Message& message, std::string_view script_hash) = 0;
  /// Called after each new connection, on which nothing has run yet.
  virtual void connected() {}
};

}  // namespace outbox::sink::hiredis
