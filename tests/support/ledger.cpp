#include "support/ledger.hpp"

#include <ostream>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace outbox::test {
namespace {

constexpr std::size_t kMostExamples = 12;

void note(Verdict& verdict, std::uint64_t& count, const std::string& what) {
  ++count;
  if (verdict.examples.size() < kMostExamples) verdict.examples.push_back(what);
}

std::string name_of(const Attempt& attempt) {
  return attempt.key + " version " + std::to_string(attempt.version) + " (" + attempt.id + ")";
}

}  // namespace

Verdict judge(const std::vector<Attempt>& attempts, const std::vector<Delivery>& deliveries) {
  Verdict verdict;
  std::unordered_map<std::string, const Attempt*> by_id;
  for (const Attempt& attempt : attempts) {
    by_id[attempt.id] = &attempt;
    verdict.committed += attempt.end == Attempt::End::committed ? 1 : 0;
    verdict.unknown += attempt.end == Attempt::End::unknown ? 1 : 0;
  }
  std::unordered_set<std::string> seen;
  std::unordered_map<std::string, std::int64_t>
      newest;  // of each key: the greatest version delivered so far
  for (const Delivery& delivery : deliveries) {
    const auto found = by_id.find(delivery.id);
    if (found == by_id.end()) {
      note(verdict, verdict.ghosts, "delivered, never written: " + delivery.id);
      continue;
    }
    const Attempt& attempt = *found->second;
    if (attempt.key != delivery.key || attempt.body != delivery.body)
      note(verdict, verdict.altered, "altered: " + name_of(attempt));
    if (!seen.insert(delivery.id).second) {
      ++verdict.duplicates;
      continue;
    }
    ++verdict.delivered;
    if (attempt.end == Attempt::End::rolled_back) {
      note(verdict, verdict.ghosts, "delivered, rolled back: " + name_of(attempt));
      continue;
    }
    if (attempt.end == Attempt::End::unknown || attempt.key.empty()) continue;
    std::int64_t& last = newest[attempt.key];
    if (attempt.version <= last) {
      note(verdict, verdict.out_of_order,
           "out of order: " + name_of(attempt) + " after version " + std::to_string(last));
    } else {
      last = attempt.version;
    }
  }
  for (const Attempt& attempt : attempts) {
    if (attempt.end == Attempt::End::committed && !seen.contains(attempt.id))
      note(verdict, verdict.lost, "lost: " + name_of(attempt));
  }
  return verdict;
}

std::ostream& operator<<(std::ostream& out, const Verdict& verdict) {
  out << "committed " << verdict.committed << ", delivered " << verdict.delivered << ", lost "
      << verdict.lost << ", ghosts " << verdict.ghosts << ", out of order " << verdict.out_of_order
      << ", duplicates " << verdict.duplicates << ", altered " << verdict.altered << ", unknown "
      << verdict.unknown;
  for (const std::string& example : verdict.examples) out << "\n  " << example;
  return out;
}

}  // namespace outbox::test
