#include "verify/verify_sink.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/error.hpp"

namespace outbox::verify {
namespace {

using Side = IdCompare::Side;

/// Collects the ids of the log while the ledger is verified.
class Collector final : public LedgerObserver {
 public:
  explicit Collector(IdCompare ids) : ids_(std::move(ids)) {}

  Status restart() override {
    OUTBOX_TRY(ids_, IdCompare::create());
    return {};
  }
  void event(const store::LedgerEvent& event, LedgerWalk::Standing standing) override {
    ids_.add(event.id, standing == LedgerWalk::Standing::settled ? Side::settled : Side::pending,
             event.created_at_us / 1'000'000);
  }
  /// A corrected copy is not in the log, so its id is added here. A parked event that was delivered
  /// in the end is in the destination, so it is not set aside.
  void parked(const store::ParkedEntry& entry) override {
    if (entry.copied) ids_.add(entry.id, Side::settled);
    if (entry.outcome != store::ParkedOutcome::delivered) ids_.add(entry.id, Side::aside);
  }

  [[nodiscard]] IdCompare& ids() { return ids_; }

 private:
  IdCompare ids_;
};

/// Adds the events that the walk has not seen: those before the baseline, and those since its
/// moment.
Status add_rest(store::LedgerReader& reader, std::int32_t subscription, const Verification& ledger,
                IdCompare& ids) {
  const auto add = [&ids](std::span<const store::LedgerEvent> events) {
    for (const store::LedgerEvent& event : events) ids.add(event.id, Side::pending);
  };
  OUTBOX_TRY(const store::LedgerMoment now, reader.begin(subscription));
  const std::vector<store::EventRange> rest = events_between(ledger.moment, to_place(now));
  for (const store::EventRange& range : rest) {
    OUTBOX_TRY(reader.scan(range, add));
  }
  if (ledger.ledger.beginnings.empty()) return {};
  const Place beginning{.s1 = store::Visible::nothing()};
  for (const auto& range : events_between(beginning, ledger.ledger.beginnings.front().place)) {
    OUTBOX_TRY(reader.scan(range, add));
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
  const std::int64_t filtered = found.ledger.filtered();
  const IdCompare::Found& ids = found.sink.ids;
  if (const std::int64_t lost = count_lost(found.sink, filtered); lost > 0) {
    const char* const which = filtered == 0 ? ": " : ", among others filtered: ";
    add_fault(
        report, FaultKind::lost,
        outbox::count("delivered event", lost, "is", "are") + " not in the destination" +
            (ids.some_missing.empty() ? ", nor among the messages that it removed"
                                      : which + examples(ids.some_missing, ids.young_missing)));
  }
  if (ids.ghosts > 0) {
    add_fault(report, FaultKind::ghosts,
              outbox::count("id", ids.ghosts, "in the destination is", "in the destination are") +
                  " of no committed event: " + examples(ids.some_ghosts, ids.ghosts));
  }
}

/// Clocks differ, and a message may wait before it is sent.
constexpr std::int64_t kMarginSeconds = 3600;

}  // namespace

namespace {

/// Counts the ids of which one of these parts has a message.
IdCompare::Ghosts ghosts_in(const std::vector<bool>& ours, const IdCompare::Found& ids) {
  IdCompare::Ghosts found;
  for (const auto& [parts, ghosts] : ids.ghosts_by_parts) {
    if (std::ranges::none_of(parts,
                             [&](std::uint32_t part) { return part < ours.size() && ours[part]; }))
      continue;
    found.count += ghosts.count;
    for (const EventId& id : ghosts.some) {
      if (found.some.size() < IdCompare::kExamples) found.some.push_back(id);
    }
  }
  return found;
}

}  // namespace

SinkFound sum_parts(IdCompare::Found ids, const sink::ReadParts& parts, bool ghosts_known) {
  SinkFound found;
  found.ids = std::move(ids);
  IdCompare::Found& all = found.ids;
  all.parts.resize(parts.size());
  std::vector<bool> ours(parts.size(), true);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const sink::ReadPart& part = parts[i];
    const IdCompare::Part& held = all.parts[i];
    const bool foreign = held.known == 0 && held.messages + part.without_id > 0;
    if (!part.certain && ghosts_known && foreign) {
      found.others.push_back(part.name);
      all.in_sink -= held.messages;
      ours[i] = false;
      continue;
    }
    found.without_id += part.without_id;
    found.removed += part.removed;
    found.removed_before_us = std::max(found.removed_before_us, part.removed_before_us);
  }
  auto [ghosts, some] = ghosts_known ? ghosts_in(ours, all) : IdCompare::Ghosts{};
  all.ghosts = ghosts;
  all.some_ghosts = std::move(some);
  return found;
}

std::int64_t young_from(const SinkFound& found) {
  return found.removed == 0 ? 0 : found.removed_before_us / 1'000'000 + kMarginSeconds;
}

std::int64_t count_lost(SinkFound& found, std::int64_t filtered) {
  const std::int64_t absent = std::max<std::int64_t>(0, found.ids.missing - filtered);
  const std::int64_t lost =
      std::max({std::int64_t{0}, absent - found.removed, found.ids.young_missing - filtered});
  found.uncompared = absent - lost;
  return lost;
}

Result<SinkVerification> verify_sink(store::LedgerReader& reader, std::int32_t subscription,
                                     const ReadSink& read_sink) {
  OUTBOX_TRY(IdCompare empty, IdCompare::create());
  Collector collector(std::move(empty));
  OUTBOX_TRY(Verification ledger, verify(reader, subscription, {.observer = &collector}));
  IdCompare& ids = collector.ids();
  // The destination is read after the ledger, so that it has all that the ledger calls delivered,
  // and before the rest of the log, so that the log has all that the destination has.
  OUTBOX_TRY(const sink::ReadParts parts, read_sink([&ids](std::uint32_t part, const EventId& id) {
               ids.add_message(id, part);
             }));
  OUTBOX_TRY(add_rest(reader, subscription, ledger, ids));
  OUTBOX_TRY(IdCompare::Found compared, ids.compare());
  // A message of an event that retention removed cannot be told from a ghost.
  const bool ghosts_known = !ledger.pruned.any();
  SinkVerification found{.ledger = std::move(ledger),
                         .sink = sum_parts(std::move(compared), parts, ghosts_known)};
  if (found.sink.removed > 0 && found.sink.ids.missing > 0) {
    OUTBOX_TRY(compared, ids.compare(young_from(found.sink)));
    found.sink.ids.young_missing = compared.young_missing;
    found.sink.ids.some_missing = std::move(compared.some_missing);
  }
  judge(found);
  return found;
}

}  // namespace outbox::verify
