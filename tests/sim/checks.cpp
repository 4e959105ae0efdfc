#include "sim/checks.hpp"

#include <algorithm>

#include "event/key.hpp"

namespace outbox::sim {

void Checks::step(bool steady) {
  check_order();
  if (parked_.parks_twice()) broke("an event is parked twice");
  if (steady && topic_.duplicates() > excuses_)
    broke("P5: duplicates without a crash or an unknown outcome");
  if (options_.exact && topic_.duplicates() > 0) broke("P5: a duplicate that nothing excuses");
  if (topic_.duplicates() > allowed_duplicates_ + excuses_) broke("P5: too many duplicates");
}

void Checks::account(const store::Settlement& row) {
  const bool starts_here = ledger_.drained()
                               ? row.s1 == ledger_.s1 && row.from_position == 0
                               : row.s2 == ledger_.s2 && row.from_position == ledger_.position;
  if (!starts_here) return broke("ledger: a row does not start at the cursor");
  store::Tally done;
  store::Tally filtered;
  for (const std::int64_t seq : log_.between(row.s1, row.s2, row.from_position)) {
    if (row.position && seq > *row.position) break;
    const bool wanted = options_.wanted(seq);
    (wanted ? done : filtered).add(event::id_hash(log_.at(seq).view.id));
    if (wanted && !topic_.has(seq) && !parked_.rows().contains(seq))
      broke("P2: the cursor passed an event that never arrived");
  }
  store::Tally counted = row.acked;
  counted += row.parked;
  if (!(done == counted) || !(filtered == row.filtered)) broke("ledger: the sums differ");
  ledger_ = row.end();
}

void Checks::check_order() {
  for (; checked_ < topic_.arrivals().size(); ++checked_) {
    const std::int64_t seq = topic_.arrivals()[checked_];
    if (log_.at(seq).committed_at == 0) return broke("P3: a ghost was delivered");
    if (!options_.wanted(seq)) return broke("a filtered event was delivered");
    if (has_arrived(seq)) continue;
    arrived_.resize(std::max(arrived_.size(), static_cast<std::size_t>(seq) + 1));
    arrived_[static_cast<std::size_t>(seq)] = true;
    check_earlier(seq);
  }
}

/// All earlier events of the key that are committed and wanted must have arrived before.
void Checks::check_earlier(std::int64_t seq) {
  const std::string& key = log_.at(seq).key;
  for (std::int64_t earlier = seq - 1; earlier > 0; --earlier) {
    const LoggedEvent& before = log_.at(earlier);
    if (before.committed_at == 0 || before.key != key || !options_.wanted(earlier)) continue;
    if (is_dead(earlier) && !options_.dead_blocks) continue;
    if (!has_arrived(earlier)) broke("P4: out of order in key " + key);
    return;  // the earlier event was checked when it arrived
  }
}

bool Checks::is_dead(std::int64_t seq) const {
  const auto row = parked_.rows().find(seq);
  return row != parked_.rows().end() && row->second.state == store::ParkedState::dead;
}

}  // namespace outbox::sim
