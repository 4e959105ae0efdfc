#include "demo/check.hpp"

#include <utility>

namespace outbox::demo {

Checker::Checker(std::vector<Order> committed) {
  committed_.reserve(committed.size());
  for (Order& order : committed) {
    std::string reference = order.reference;
    committed_.emplace(std::move(reference), Entry{.order = std::move(order), .delivered = false});
  }
  verdict_.committed = static_cast<std::int64_t>(committed_.size());
}

void Checker::saw(const std::optional<Order>& message) {
  if (!message) {
    ++verdict_.ghosts;
    return;
  }
  const auto found = committed_.find(message->reference);
  if (found == committed_.end()) {
    ghosts_.insert(message->reference).second ? ++verdict_.ghosts : ++verdict_.duplicates;
    return;
  }
  Entry& entry = found->second;
  if (!(entry.order == *message)) {
    ++verdict_.ghosts;  // nobody committed it like this
    return;
  }
  if (std::exchange(entry.delivered, true)) {
    ++verdict_.duplicates;
    return;
  }
  ++verdict_.delivered;
  std::int64_t& newest = newest_[message->customer];
  if (message->version < newest) {
    ++verdict_.out_of_order;
  } else {
    newest = message->version;
  }
}

Verdict Checker::verdict() const {
  Verdict verdict = verdict_;
  verdict.lost = verdict.committed - verdict.delivered;
  return verdict;
}

}  // namespace outbox::demo
