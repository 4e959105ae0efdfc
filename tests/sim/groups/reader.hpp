// The pump and the reader of one tenure. They do what src/feed/pump.cpp and
// store/postgres/reader.cpp do, one step at a time. The marks are the relay's own (MarkBook).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/groups/database.hpp"
#include "sim/groups/tables.hpp"
#include "store/delivery.hpp"
#include "store/postgres/marks.hpp"

namespace outbox::sim {

class SimReader {
 public:
  using Take = std::function<void(std::size_t strand, const std::shared_ptr<const store::Page>&)>;

  SimReader(Random& random, Database& database, Tables& tables)
      : random_(random), database_(database), tables_(tables) {}

  void add(std::size_t strand, store::LaneMask lanes, const store::Cursor& cursor) {
    readings_.push_back({.strand = strand, .lanes = lanes, .cursor = cursor});
  }
  void remove_all();
  /// Executes a statement, or waits for one. Returns false if the connection is of no use any more.
  [[nodiscard]] bool step(bool has_room, const Take& take);
  [[nodiscard]] std::optional<int> incarnation() const { return incarnation_; }
  store::postgres::MarkBook& marks() { return marks_; }

 private:
  struct Reading {
    std::size_t strand{0};
    store::LaneMask lanes{0};
    store::Cursor cursor;
  };
  void begin();
  void fetch(const Reading& reading);
  void pass_page(const Take& take);
  [[nodiscard]] std::vector<std::size_t> rows_of(const Reading& reading, const store::Visible& s1,
                                                 const store::Visible& s2,
                                                 std::int64_t bound) const;

  Random& random_;
  Database& database_;
  Tables& tables_;
  store::postgres::MarkBook marks_;
  std::optional<int> incarnation_;
  std::optional<std::int64_t> sequence_;  ///< The sequence that was read, to be written as a mark.
  std::uint64_t mark_xid_{0};
  bool begun_{false};

  std::vector<Reading> readings_;
  std::size_t turn_{0};                        ///< The reading that is next in this turn.
  std::shared_ptr<const store::Pair> newest_;  ///< The newest pair of this turn.
  std::shared_ptr<store::Page> page_;          ///< A fetched page that has not passed the barrier.
  bool begins_pair_{false};
};

}  // namespace outbox::sim
