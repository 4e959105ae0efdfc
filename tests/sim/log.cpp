#include "sim/log.hpp"

#include <algorithm>

namespace outbox::sim {

void SimLog::begin_transaction() {
  const auto key = static_cast<unsigned>(random_.below(locks_.size()));
  if (locks_[key] || open_.size() > 20) return;
  locks_[key] = true;
  Transaction transaction{.key = key, .events = {}};
  const auto count = 1 + random_.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    ++seq_;
    LoggedEvent event;
    event.key = "k" + std::to_string(key);
    texts_.push_back(event.key);
    event.view.seq = seq_;
    event.view.aggregate_type = "sim";
    event.view.aggregate_id = texts_.back();
    event.view.event_type = "Happened";
    const auto id = static_cast<std::uint64_t>(repeated_ids_ ? seq_ / 16 : seq_);
    for (unsigned byte = 0; byte < 8; ++byte)
      event.view.id.bytes[byte] = static_cast<std::uint8_t>(id >> (8 * byte));
    transaction.events.push_back(events_.size());
    events_.push_back(event);
  }
  open_.push_back(std::move(transaction));
}

void SimLog::finish_transaction() {
  if (open_.empty()) return;
  const auto which = random_.below(open_.size());
  const Transaction transaction = open_[which];
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
  locks_[transaction.key] = false;
  const bool commits = !random_.chance(15);
  if (!commits) return;
  ++commits_;
  of_commit_.emplace_back();
  for (const std::size_t at : transaction.events) {
    events_[at].committed_at = commits_;
    of_commit_.back().push_back(events_[at].view.seq);
  }
}

void SimLog::finish_all() {
  while (!open_.empty()) finish_transaction();
}

std::span<const std::int64_t> SimLog::between(const std::string& s1, const std::string& s2,
                                              std::int64_t position) const {
  const auto found = std::find_if(pairs_.begin(), pairs_.end(), [&](const SortedPair& pair) {
    return pair.s1 == s1 && pair.s2 == s2;
  });
  SortedPair& pair = found != pairs_.end() ? *found : pairs_[oldest_pair_++ % pairs_.size()];
  if (found == pairs_.end()) {
    pair = {.s1 = s1, .s2 = s2, .seqs = {}};
    for (std::uint64_t commit = std::stoull(s1), last = std::stoull(s2); commit < last; ++commit)
      pair.seqs.insert(pair.seqs.end(), of_commit_[commit].begin(), of_commit_[commit].end());
    std::sort(pair.seqs.begin(), pair.seqs.end());
  }
  return {std::upper_bound(pair.seqs.begin(), pair.seqs.end(), position), pair.seqs.end()};
}

std::shared_ptr<const store::Page> SimLog::read(const store::Cursor& from, std::size_t rows) const {
  auto page = std::make_shared<store::Page>();
  store::Pair pair;
  pair.s1 = from.s1;
  pair.s2 = from.drained() ? std::to_string(commits_) : from.s2;
  pair.bound = from.drained() ? seq_ : from.bound;
  page->from = from.drained() ? 0 : from.position;
  page->position = page->from;
  page->drained = true;
  for (const std::int64_t seq : between(pair.s1, pair.s2, page->from)) {
    if (page->events.size() == rows) {
      page->drained = false;
      break;
    }
    page->events.push_back(at(seq).view);
    page->position = seq;
    page->bytes += 10;
  }
  page->pair = std::make_shared<const store::Pair>(pair);
  return page;
}

}  // namespace outbox::sim
