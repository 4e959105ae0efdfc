// PostgreSQL as far as the relay depends on it (docs/design/reading.md, "What is relied upon"). It
// has transaction ids, a sequence, snapshots, a log that is flushed later than it is written, and
// crashes that take back what was not flushed and issue its numbers again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "outbox/event.hpp"
#include "sim/random.hpp"
#include "store/history.hpp"

namespace outbox::sim {

/// An event as the world knows it. Its number is never used again, unlike its xid and seq.
struct WrittenEvent {
  EventView view;
  std::uint64_t xid{0};
  unsigned key{0};
  unsigned lane{0};
  bool committed{false};
  bool wanted{true};
  bool of_type{false};  ///< It is of the type that may get a subscription of its own.
};

/// The id of an event is its number.
[[nodiscard]] std::size_t number_of(const EventId& id);

class Database {
 public:
  /// With `tasks` the events are tasks of two types, except those that are filtered.
  Database(Random& random, unsigned keys, unsigned filtered_percent, bool tasks);

  // ---- writers

  /// One of the open transactions takes its next step, or a new one begins. Some take their id
  /// early. All lock the key before a seq is taken, and commit late, not durably, or not at all.
  void write();
  void finish_writers();

  // ---- reading

  /// Its xmax is the newest finished transaction plus one, not the next id.
  [[nodiscard]] store::Visible snapshot() const;
  [[nodiscard]] std::int64_t sequence() const { return sequence_; }
  [[nodiscard]] bool sees(const store::Visible& snapshot, std::uint64_t xid) const {
    return snapshot.sees(xid) && status_[xid] == Status::committed;
  }
  /// The numbers of all events in the table, committed or not, in the order of seq.
  [[nodiscard]] const std::vector<std::size_t>& rows() const { return rows_; }
  [[nodiscard]] const WrittenEvent& event(std::size_t number) const { return events_[number]; }
  [[nodiscard]] std::size_t events() const { return events_.size(); }
  /// The committed and wanted events of the key, in the order in which their transactions held it.
  [[nodiscard]] const std::vector<std::size_t>& of_key(unsigned key) const { return of_key_[key]; }

  // ---- the relay's own transactions

  std::uint64_t begin();
  void commit(std::uint64_t xid, bool durably);
  [[nodiscard]] std::uint64_t inserted() const { return inserted_; }
  [[nodiscard]] std::uint64_t flushed() const { return flushed_; }
  void flush();

  /// Stops the database immediately. Returns the events that are gone though they had been visible.
  std::vector<std::size_t> crash();
  [[nodiscard]] int incarnation() const { return incarnation_; }

 private:
  enum class Status : std::uint8_t { running, committed, aborted };
  struct Writer {
    std::uint64_t xid{0};
    unsigned key{0};
    bool locked{false};
    std::uint64_t left{0};  ///< How many events it has yet to insert.
    std::vector<std::size_t> events;
  };
  /// What a crash leaves.
  struct Durable {
    std::uint64_t newest_xid{9};
    std::int64_t sequence{0};
  };

  void advance(Writer& writer);
  void insert(Writer& writer);
  void end(Writer& writer);
  void finish(std::uint64_t xid, Status status);
  void log() { ++inserted_; }

  Random& random_;
  const unsigned filtered_percent_;
  const bool tasks_;
  const std::string queue_;
  std::vector<std::string> names_;
  std::vector<bool> locks_;
  std::vector<Writer> writers_;
  std::vector<Status> status_ = std::vector<Status>(10, Status::aborted);  ///< By xid.
  /// The positions in the log of the commits that are not flushed.
  std::map<std::uint64_t, std::uint64_t> committed_at_;
  std::deque<WrittenEvent> events_;
  std::vector<std::size_t> rows_;
  std::vector<std::vector<std::size_t>> of_key_;
  std::vector<std::uint64_t> running_;  ///< In ascending order.
  std::uint64_t next_xid_{10};
  std::uint64_t newest_finished_{9};
  std::int64_t sequence_{0};
  std::int64_t sequence_logged_{0};
  std::uint64_t newest_logged_xid_{9};
  std::uint64_t inserted_{0};
  std::uint64_t flushed_{0};
  Durable durable_;
  int incarnation_{1};
};

}  // namespace outbox::sim
