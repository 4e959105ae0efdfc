// Keeps the rounds of a long run in a folder. Each round that ended is one line, so that an
// interrupted run goes on with the next round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fault/kills/round.hpp"

namespace outbox::test::kills {

class Report {
 public:
  /// Reads the rounds of the folder. Throws if the folder belongs to another seed.
  Report(std::string folder, std::uint64_t seed);

  [[nodiscard]] int rounds() const { return static_cast<int>(rounds_.size()); }
  [[nodiscard]] std::uint64_t kills() const;
  /// Writes the round as a line and into the table.
  void add(const RoundResult& round);
  /// Returns the table, in Markdown.
  [[nodiscard]] std::string table() const;

 private:
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }

  const std::string folder_;
  std::vector<std::vector<std::uint64_t>> rounds_;  ///< One row per round.
};

}  // namespace outbox::test::kills
