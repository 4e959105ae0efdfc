#include "support/judge.hpp"

#include <ostream>

namespace outbox::test {
namespace {

constexpr std::size_t kMostExamples = 12;

void note(Verdict& verdict, std::uint64_t& count, const std::string& what) {
  ++count;
  if (verdict.examples.size() < kMostExamples) verdict.examples.push_back(what);
}

std::string make_name(const Attempt& attempt) {
  return attempt.key + " version " + std::to_string(attempt.version) + " (" + attempt.id + ")";
}

}  // namespace

Judge::Judge(const std::vector<Attempt>& attempts) : attempts_(attempts) {
  for (const Attempt& attempt : attempts_) {
    by_id_[attempt.id] = &attempt;
    verdict_.committed += attempt.end == Attempt::End::committed ? 1 : 0;
    verdict_.unknown += attempt.end == Attempt::End::unknown ? 1 : 0;
  }
}

void Judge::saw(const Delivery& delivery) {
  const auto found = by_id_.find(delivery.id);
  const Attempt* const attempt = found == by_id_.end() ? nullptr : found->second;
  if (attempt != nullptr && (attempt->key != delivery.key || attempt->body != delivery.body))
    return note(verdict_, verdict_.altered, "altered: " + make_name(*attempt));
  if (!delivery.id.empty() && !seen_.insert(delivery.id).second) {
    ++verdict_.duplicates;
    return;
  }
  if (attempt == nullptr)
    return note(verdict_, verdict_.ghosts, "delivered, never written: " + delivery.id);
  ++verdict_.delivered;
  if (attempt->end == Attempt::End::rolled_back)
    return note(verdict_, verdict_.ghosts, "delivered, rolled back: " + make_name(*attempt));
  if (attempt->end == Attempt::End::unknown) return;
  ++committed_seen_;
  if (attempt->key.empty()) return;
  std::int64_t& last = newest_[attempt->key];
  if (attempt->version <= last) {
    note(verdict_, verdict_.out_of_order,
         "out of order: " + make_name(*attempt) + " after version " + std::to_string(last));
  } else {
    last = attempt->version;
  }
}

Verdict Judge::verdict() const {
  Verdict verdict = verdict_;
  for (const Attempt& attempt : attempts_) {
    if (attempt.end == Attempt::End::committed && !seen_.contains(attempt.id))
      note(verdict, verdict.lost, "lost: " + make_name(attempt));
  }
  return verdict;
}

Verdict judge(const std::vector<Attempt>& attempts, const std::vector<Delivery>& deliveries) {
  Judge judge(attempts);
  for (const Delivery& delivery : deliveries) judge.saw(delivery);
  return judge.verdict();
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
