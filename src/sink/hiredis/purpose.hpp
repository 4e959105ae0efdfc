// What a kind of sink does on a Redis server: the script that the server runs for each event, and what people are told of it.
#pragma once

#include <outbox/error.hpp>
#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sink/inspection.hpp"

namespace outbox::sink::hiredis {

/// What people can do, where kinds of sinks differ.
struct Hints {
  const char* memory;    ///< maxmemory is reached.
  const char* rights;    ///< The sink's user lacks one.
  const char* type;      ///< A key is there and has another type.
  const char* commands;  ///< The server lacks a command.
  const char* refused;   ///< The script refuses the event (kRefused). "": it refuses none.
};

/// What becomes of events when memory is full.
struct Eviction {
  const char* any_key;        ///< maxmemory-policy allkeys-...
  const char* expiring_keys;  ///< volatile-...
};

/// The code of an error of a script that finds the event itself at fault.
inline constexpr std::string_view kRefused = "OUTBOX";

struct Purpose {
  std::string sink;  ///< "redis": what errors begin with, and how settings are called in hints.
  std::string_view attribute_prefix;
  /// In Lua; it runs for each event, with the arguments of a Call. It replies
  ///   a number: the event is there, since now or before;
  ///   a string: it is there, but what follows must wait, for this reason;
  ///   an error: it is not there. With kRefused as its code the event is at fault, else the server is.
  const char* script;
  /// A command that writes, and leaves nothing: finds out before an event is sent that the memory is full, that the disk fails, or that
  /// a right is missing. Empty: none.
  std::vector<std::string> trial;
  std::string duplicates;  ///< As in Inspection, as is `order`.
  std::string order;
  std::vector<Weakness> weaknesses;  ///< Of the sink's own settings.
  Hints hints;
  Eviction eviction;
};

/// The commands for one event. The views are valid until the next one is asked for, and as long as its message and the hash.
struct Call {
  using Arguments = std::span<const std::string_view>;

  Arguments arguments;  ///< EVALSHA.
  std::string place;    ///< Where the event goes, for people: "stream orders".
  /// Runs before it. When it fails, the event is in doubt although the script has succeeded. Empty: none.
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

  /// An error: the event is at fault.
  [[nodiscard]] virtual Result<Call> call(const Message& message, std::string_view script_hash) = 0;
  /// There is a new connection: nothing ran on it.
  virtual void connected() {}
};

}  // namespace outbox::sink::hiredis
