#include "fault/kills/report.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace outbox::test::kills {
namespace {

// The columns that follow the hits of each fault.
constexpr std::array<const char*, 10> kColumns{
    "committed", "taken back", "lost",    "ghosts",  "out of order",
    "altered",   "duplicates", "allowed", "seconds", "delivered"};

std::vector<std::uint64_t> list_columns(const RoundResult& round) {
  std::vector<std::uint64_t> all(round.hits.begin(), round.hits.end());
  const test::Verdict& verdict = round.verdict;
  for (const std::uint64_t value :
       {verdict.committed, round.taken_back, verdict.lost, verdict.ghosts, verdict.out_of_order,
        verdict.altered, verdict.duplicates, round.duplicates_allowed, round.seconds,
        verdict.delivered})
    all.push_back(value);
  return all;
}

std::uint64_t kills_in(const std::vector<std::uint64_t>& columns) {
  std::uint64_t kills = 0;
  for (std::size_t fault = 0; fault < kFaults; ++fault) kills += columns[fault];
  return kills;
}

std::string row(const std::string& title, const std::vector<std::uint64_t>& columns) {
  std::string line = "| " + title + " | " + std::to_string(kills_in(columns));
  for (std::size_t at = kFaults; at < columns.size(); ++at)
    line += " | " + std::to_string(columns[at]);
  return line + " |\n";
}

}  // namespace

Report::Report(std::string folder, std::uint64_t seed) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  if (std::uint64_t other = 0; std::ifstream(file("seed")) >> other && other != seed)
    throw std::runtime_error(folder_ + " holds a run with --seed " + std::to_string(other));
  std::ofstream(file("seed")) << seed << '\n';
  std::ifstream in(file("rounds"));
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<std::uint64_t> columns;
    for (std::uint64_t value = 0; words >> value;) columns.push_back(value);
    if (columns.size() != kFaults + kColumns.size())
      throw std::runtime_error("not a line of " + file("rounds") + ": " + line);
    rounds_.push_back(std::move(columns));
  }
}

std::uint64_t Report::kills() const {
  std::uint64_t kills = 0;
  for (const auto& columns : rounds_) kills += kills_in(columns);
  return kills;
}

void Report::add(const RoundResult& round) {
  rounds_.push_back(list_columns(round));
  std::ofstream out(file("rounds"), std::ios::app);
  for (const std::uint64_t value : rounds_.back()) out << value << ' ';
  out << '\n';
  std::ofstream(file("table.md")) << table();
}

std::string Report::table() const {
  std::vector<std::uint64_t> total(kFaults + kColumns.size());
  std::string text = "| round | kills";
  std::string line = "|---|---|";
  for (const char* column : kColumns) {
    text += std::string(" | ") + column;
    line += "---|";
  }
  text += " |\n" + line + "\n";
  for (std::size_t at = 0; at < rounds_.size(); ++at) {
    text += row(std::to_string(at + 1), rounds_[at]);
    for (std::size_t column = 0; column < total.size(); ++column)
      total[column] += rounds_[at][column];
  }
  text += row("all", total) + "\n| fault | times |\n|---|---|\n";
  for (std::size_t fault = 0; fault < kFaults; ++fault)
    text += fmt::format("| {} | {} |\n", to_string(static_cast<Fault>(fault)), total[fault]);
  return text;
}

}  // namespace outbox::test::kills
