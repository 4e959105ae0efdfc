// The rounds of a long run, kept in a folder: one line per round that ended, so that an interrupted
// run goes on with the next one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fault/kills/round.hpp"

namespace outbox::test::kills {

class Report {
 public:
  /// Reads what is there. Throws if the folder belongs to another seed.
  Report(std::string folder, std::uint64_t seed);

  [[nodiscard]] int rounds() const { return static_cast<int>(rounds_.size()); }
  [[nodiscard]] std::uint64_t kills() const;
  /// On the disk when this returns, as a line and in the table.
  void add(const RoundResult& round);
  /// The table, in Markdown.
  [[nodiscard]] std::string table() const;

 private:
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }

  const std::string folder_;
  std::vector<std::vector<std::uint64_t>> rounds_;  ///< The columns of each.
};

}  // namespace outbox::test::kills
