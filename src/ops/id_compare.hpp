// Compares the ids of a log with those of a destination, in bounded memory: both sides are divided by hash into temporary files,
// and compared file by file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <vector>

namespace outbox::ops {

/// One thread at a time.
class IdCompare {
 public:
  /// What an id of the log is to the subscription.
  enum class Side : std::uint8_t {
    settled,  ///< Delivered or filtered.
    pending,  ///< May have been delivered.
    aside,    ///< Parked or discarded: takes one settled event of the same id away.
    sink,     ///< In the destination.
  };
  struct Found {
    std::int64_t in_sink{0};     ///< Messages in the destination.
    std::int64_t duplicates{0};  ///< Of them, those of an id that was there already.
    std::int64_t unsettled{0};   ///< Of them, events that are not settled yet.
    std::int64_t ghosts{0};      ///< Ids in the destination that the log does not have.
    std::int64_t missing{0};     ///< Settled events that are not in the destination.
    // The first of each.
    std::vector<EventId> some_ghosts{};
    std::vector<EventId> some_missing{};
  };

  [[nodiscard]] static Result<IdCompare> create();
  void add(const EventId& id, Side side);
  [[nodiscard]] Result<Found> compare();

 private:
  struct Record {
    EventId id;
    Side side{Side::settled};
  };
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  [[nodiscard]] static Result<std::vector<Record>> read(std::FILE* file);
  static void compare(std::vector<Record>& records, Found& found);

  static constexpr std::size_t kFiles = 64;
  std::array<File, kFiles> files_;
  bool failed_{false};
};

}  // namespace outbox::ops
