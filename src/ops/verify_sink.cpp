#include "ops/verify_sink.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace outbox::ops {
namespace {

using Side = IdCompare::Side;

/// Collects the log's side while it is verified.
class Collector final : public LedgerObserver {
 public:
  explicit Collector(IdCompare ids) : ids_(std::move(ids)) {}

  Status restart() override {
    OUTBOX_TRY(ids_, IdCompare::create());
    return {};
  }
  void event(const store::LedgerEvent& event, LedgerWalk::Standing standing) override {
    ids_.add(event.id, standing == LedgerWalk::Standing::settled ? Side::settled : Side::pending);
  }
  /// A copy of an edited event is not in the log. What was delivered in the end is in the destination.
  void parked(const store::ParkedEntry& entry) override {
    if (entry.copied) ids_.add(entry.id, Side::settled);
    if (entry.outcome != store::ParkedOutcome::delivered) ids_.add(entry.id, Side::aside);
  }

  [[nodiscard]] IdCompare& ids() { return ids_; }

 private:
  IdCompare ids_;
};

/// What the walk has not seen: before the baseline, and since its moment.
Status add_rest(store::LedgerReader& reader, std::int32_t subscription, const Verification& ledger,
                IdCompare& ids) {
  const auto add = [&ids](std::span<const store::LedgerEvent> events) {
    for (const store::LedgerEvent& event : events) ids.add(event.id, Side::pending);
  };
  OUTBOX_TRY(const store::LedgerMoment now, reader.begin(subscription));
  const std::vector<store::EventRange> rest = events_between(ledger.moment, place_of(now));
  for (const store::EventRange& range : rest) {
    if (Status status = reader.scan(range, add); !status) return status;
  }
  if (!ledger.ledger.baseline) return {};
  const Place beginning{.s1 = store::Visible::nothing()};
  for (const auto& range : events_between(beginning, *ledger.ledger.baseline)) {
    if (Status status = reader.scan(range, add); !status) return status;
  }
  return {};
}

std::string examples(const std::vector<EventId>& ids, std::int64_t count) {
  std::string text;
  for (const EventId& id : ids) text += (text.empty() ? "" : ", ") + id.str();
  return count > std::ssize(ids) ? text + " ..." : text;
}

void add_fault(LedgerReport& report, FaultKind kind, std::string text) {
  ++report.fault_count;
  report.faults.push_back({.kind = kind, .text = std::move(text)});
}

void judge(SinkVerification& found) {
  LedgerReport& report = found.ledger.ledger;
  // What is settled and not there was filtered; which events those were is not recorded.
  const std::int64_t lost = found.sink.missing - found.ledger.filtered();
  if (lost > 0) {
    const char* const which = found.ledger.filtered() == 0 ? ": " : ", among others filtered: ";
    add_fault(report, FaultKind::lost,
              std::to_string(lost) + " events that were delivered are not in the destination" +
                  which + examples(found.sink.some_missing, found.sink.missing));
  }
  // The log does not have what retention removed.
  if (found.sink.ghosts > 0 && !found.ledger.pruned.any()) {
    add_fault(report, FaultKind::ghosts,
              std::to_string(found.sink.ghosts) +
                  " ids in the destination are of no committed event: " +
                  examples(found.sink.some_ghosts, found.sink.ghosts));
  }
}

}  // namespace

Result<SinkVerification> verify_sink(store::LedgerReader& reader, std::int32_t subscription,
                                     const ReadSink& read_sink) {
  OUTBOX_TRY(IdCompare empty, IdCompare::create());
  Collector collector(std::move(empty));
  OUTBOX_TRY(Verification ledger, verify(reader, subscription, {.observer = &collector}));
  IdCompare& ids = collector.ids();
  // After the ledger, so that all it calls delivered is there; before the rest of the log, so that the log has all that is there.
  Status status = read_sink([&ids](const EventId& id) { ids.add(id, Side::sink); });
  if (!status) return pass(status);
  if (status = add_rest(reader, subscription, ledger, ids); !status) return pass(status);
  OUTBOX_TRY(IdCompare::Found sink, ids.compare());
  SinkVerification found{.ledger = std::move(ledger), .sink = std::move(sink)};
  judge(found);
  return found;
}

}  // namespace outbox::ops
