// Compares the ids of a log with those of a destination, in bounded memory: both sides are divided
// by hash into temporary files, and compared file by file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <vector>

namespace outbox::verify {

/// Only one thread at a time may use it.
class IdCompare {
 public:
  /// What a record says about its id.
  enum class Side : std::uint32_t {
    settled,  ///< Delivered or filtered.
    pending,  ///< May have been delivered.
    aside,    ///< Parked or discarded; makes up for one settled event of the same id.
    sink,     ///< In the destination.
  };
  /// What a part of the destination holds.
  struct Part {
    std::int64_t messages{0};
    std::int64_t known{0};  ///< Messages of an id that the log has.
  };
  /// Ids that the log does not have.
  struct Ghosts {
    std::int64_t count{0};
    std::vector<EventId> some{};  ///< The first of them.
  };
  struct Found {
    std::int64_t in_sink{0};        ///< Messages in the destination.
    std::int64_t duplicates{0};     ///< Messages of an id that was there already.
    std::int64_t unsettled{0};      ///< Messages of events that are not settled yet.
    std::int64_t ghosts{0};         ///< Ids in the destination that the log does not have.
    std::int64_t missing{0};        ///< Settled events that are not in the destination.
    std::int64_t young_missing{0};  ///< Missing events that were not created before `young_s`.
    // At most kExamples ids of each kind.
    std::vector<EventId> some_ghosts{};
    std::vector<EventId> some_missing{};  ///< Ids of young_missing.
    std::vector<Part> parts{};
    /// The ghosts by the parts that have messages of them, which are in order.
    std::map<std::vector<std::uint32_t>, Ghosts> ghosts_by_parts{};
  };
  static constexpr std::size_t kExamples = 10;

  [[nodiscard]] static Result<IdCompare> create();
  /// Adds an id of the log. `created_s` is when the event was created, in seconds since 1970; 0 if
  /// that is not known.
  void add(const EventId& id, Side side, std::int64_t created_s = 0);
  /// Adds the id of a message in this part of the destination.
  void add_message(const EventId& id, std::uint32_t part = 0);
  /// Compares the sides; may be called again. Events are young if they were not created before
  /// `young_s`.
  [[nodiscard]] Result<Found> compare(std::int64_t young_s = 0);

 private:
  struct Record {
    EventId id;
    Side side{Side::settled};
    /// The part of the destination; for an id of the log, the second in which the event was
    /// created.
    std::uint32_t detail{0};
  };
  static_assert(sizeof(Record) == 24);
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  void write(const Record& record);
  [[nodiscard]] static Result<std::vector<Record>> read(std::FILE* file);
  static void count_parts(std::span<const Record> messages, bool known, Found& found);
  static void compare(std::vector<Record>& records, std::int64_t young_s, Found& found);

  static constexpr std::size_t kFiles = 64;
  std::array<File, kFiles> files_;
  std::uint32_t parts_{0};
  int write_error_{0};  ///< The errno of the first write that failed; 0 if none has.
};

}  // namespace outbox::verify
