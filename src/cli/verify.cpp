// outbox verify: proof that what was delivered is what was committed.
#include "verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/acting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"
#include "sink/json_line.hpp"
#include "sink/registry.hpp"
#include "verify/verify_inbox.hpp"
#include "verify/verify_sink.hpp"

namespace outbox::cli {
namespace {

struct VerifyOptions {
  std::optional<std::string> subscription;
  bool sink{false};
  std::vector<std::string> delivered;  ///< Files with ids.
  std::string inbox;                   ///< The store of a consumer; empty if it is not compared.
  std::string inbox_schema{"outbox"};
  std::string consumer;
  std::string inbox_keeps{"30d"};
  bool json{false};
  bool acknowledge{false};
};

struct VerifyLine {
  std::string name;
  verify::Verification found;
  std::optional<verify::SinkFound> sink;  ///< What the destination holds.
};

std::vector<store::SubscriptionRow> chosen(const VerifyOptions& options,
                                           std::vector<store::SubscriptionRow> rows) {
  if (!options.subscription) return rows;
  std::vector<std::string_view> known;
  for (store::SubscriptionRow& row : rows) {
    if (row.spec.name == *options.subscription) return {std::move(row)};
    known.emplace_back(row.spec.name);
  }
  throw Failure(
      kError, "unknown subscription: " + *options.subscription,
      did_you_mean(*options.subscription, known, "`outbox subscription list` shows them"));
}

/// "all lanes", or the numbers of the lanes.
std::string lanes_text(store::LaneMask lanes) {
  if (lanes == store::kAllLanes) return "all lanes";
  std::string text = "lanes";
  for (int lane = 0; lane < 64; ++lane) {
    if ((lanes >> lane & 1U) != 0) text += " " + std::to_string(lane);
  }
  return text;
}

// ---- reading a destination

std::unique_ptr<store::Store> open_inbox_store(const VerifyOptions& options) {
  return must(store::open_store(
      {.url = options.inbox, .schema = options.inbox_schema, .application = "outbox verify"}));
}

Result<sink::ReadParts> read_destination(const VerifyOptions& options, const SubscriptionSpec& spec,
                                         const sink::TakeId& take) {
  sink::ReadParts parts;
  if (options.sink) {
    auto read = sink::read_back(spec, take);
    if (!read) return read;
    parts = std::move(*read);
  }
  if (!options.inbox.empty()) {
    const auto store = open_inbox_store(options);
    OUTBOX_TRY(store->check());
    OUTBOX_TRY(const auto inbox, store->inbox());
    const auto keeps = parse_duration(options.inbox_keeps);
    if (!keeps)
      throw Failure(kUsage, "--inbox-keeps " + options.inbox_keeps + ": is not a duration",
                    keeps.error().hint);
    OUTBOX_TRY(sink::ReadPart part,
               verify::read_inbox(*inbox, options.consumer,
                                  std::chrono::duration_cast<std::chrono::milliseconds>(*keeps),
                                  static_cast<std::uint32_t>(parts.size()), take));
    parts.push_back(std::move(part));
  }
  for (const std::string& path : options.delivered) {
    auto file = sink::read_delivered(path, static_cast<std::uint32_t>(parts.size()), take);
    if (!file) return tl::unexpected(std::move(file.error()));
    parts.push_back(std::move(*file));
  }
  return parts;
}

/// Shows how many events were read.
class CountedReader final : public store::LedgerReader {
 public:
  CountedReader(store::LedgerReader& reader, Progress& progress)
      : reader_(reader), progress_(progress) {}

  Result<store::LedgerMoment> begin(std::int32_t subscription,
                                    const store::VisitParked& visit) override {
    return reader_.begin(subscription, visit);
  }
  Status begin_rows(std::int32_t subscription) override { return reader_.begin_rows(subscription); }
  void seek(const store::LedgerRank& after, std::int64_t last) override {
    reader_.seek(after, last);
  }
  Result<std::vector<store::LedgerRow>> next_rows(std::size_t limit) override {
    return reader_.next_rows(limit);
  }
  Status scan(const store::EventRange& range, const Visit& visit) override {
    return reader_.scan(range, [&](std::span<const store::LedgerEvent> events) {
      visit(events);
      read_ += events.size();
      progress_.at(read_);
    });
  }
  Result<std::int64_t> count(const store::EventRange& range) override {
    return reader_.count(range);
  }
  Result<store::Pruned> pruned(std::int32_t subscription) override {
    return reader_.pruned(subscription);
  }

 private:
  store::LedgerReader& reader_;
  Progress& progress_;
  std::uint64_t read_{0};
};

VerifyLine verify_one(const VerifyOptions& options, store::LedgerReader& uncounted,
                      const store::SubscriptionRow& row) {
  VerifyLine line;
  line.name = row.spec.name;
  Progress progress(Progress::Wanted::on_terminal, 0, line.name);
  CountedReader reader(uncounted, progress);
  if (!options.sink && options.inbox.empty() && options.delivered.empty()) {
    line.found = must(verify::verify(reader, row.id));
    return line;
  }
  auto found = must(verify::verify_sink(reader, row.id, [&](const sink::TakeId& take) {
    return read_destination(options, row.spec, take);
  }));
  line.found = std::move(found.ledger);
  line.sink = std::move(found.sink);
  return line;
}

// ---- showing

const char* find_hint(verify::FaultKind kind) {
  using enum verify::FaultKind;
  switch (kind) {
    case counts:
    case sum:
      return "an event was deleted or changed by hand, or the settlement was; a backup shows which";
    case uncovered: return "have them delivered again: enqueue copies of them";
    case disjoint:
    case cursor:
    case beginning:
    case overlap: return "somebody changed the table settlement; a backup shows what it held";
    case lost: return "compare the destination with its backups, or have them delivered again";
    case ghosts: return "another outbox writes there too, or the database was set back to a backup";
    case parked: return "somebody changed the tables parked, parked_end or settlement";
  }
  return "";
}

std::string fault_text(const std::string& name, const verify::Fault& fault) {
  std::string text = "subscription " + name;
  if (fault.settlement != 0)
    text += fmt::format(", settlement {} of {}", fault.settlement, event::time_text(fault.at_us));
  if (fault.lanes != 0) text += " (" + lanes_text(fault.lanes) + ")";
  text += ": " + fault.text;
  if (fault.first_seq != 0)
    text +=
        fmt::format("; those that are there have seq {} to {}", fault.first_seq, fault.last_seq);
  return text + " (hint: " + find_hint(fault.kind) + ")";
}

/// Prints what could not be compared.
void print_rest(const verify::SinkFound& sink) {
  if (!sink.others.empty()) {
    const std::string names = fmt::format("{}", fmt::join(sink.others, ", "));
    print("  not compared, because no message there comes from this outbox: {}\n", names);
  }
  if (sink.uncompared > 0) {
    print(
        "  {} not there; perhaps among the {} removed there, of before {} (hint: let messages be "
        "kept there for longer than relay.retention)\n",
        count("delivered event", sink.uncompared, "is", "are"),
        sink.removed < verify::kUncounted ? count("message", sink.removed) : "messages",
        event::time_text(sink.removed_before_us));
  }
}

void print_text(const VerifyLine& line) {
  const auto& found = line.found;
  print("{}: {} enqueued = {} delivered + {} filtered + {} pending + {} parked + {} discarded",
        line.name, found.enqueued, found.delivered(), found.filtered(), found.ledger.pending,
        found.parked.rows, found.discarded());
  if (found.ledger.skipped > 0) print(" + {} passed by a reset", found.ledger.skipped);
  print("\n  {} compared", count("settlement", found.ledger.settlements));
  if (found.ledger.unchecked > 0)
    print(", {} not, since their events were removed", found.ledger.unchecked);
  if (found.ledger.voided > 0)
    print(", {} of relays that had lost their lanes", found.ledger.voided);
  if (line.sink) {
    print("; {} in the destination, {} of them duplicates, {} not settled yet",
          count("message", line.sink->ids.in_sink), line.sink->ids.duplicates,
          line.sink->ids.unsettled);
    if (line.sink->without_id > 0) print(", and {} without an id", line.sink->without_id);
  }
  print(": {}\n", found.ok() ? "nothing differs" : count("difference", found.ledger.fault_count));
  if (line.sink) print_rest(*line.sink);
}

Json to_json(const verify::Fault& fault) {
  Json settlement;
  if (fault.settlement != 0)
    settlement = {{"id", fault.settlement}, {"at", event::time_text(fault.at_us)}};
  Json lanes = Json::array();
  for (int lane = 0; lane < 64; ++lane) {
    if ((fault.lanes >> lane & 1U) != 0) lanes.push_back(lane);
  }
  Json seqs;
  if (fault.first_seq != 0) seqs = {{"first", fault.first_seq}, {"last", fault.last_seq}};
  return {{"kind", verify::to_string(fault.kind)},
          {"settlement", settlement},
          {"lanes", lanes},
          {"seqs", seqs},
          {"text", fault.text}};
}

Json to_json(const std::optional<verify::SinkFound>& sink) {
  if (!sink) return {};
  Json removed_before;
  if (sink->removed > 0) removed_before = event::time_text(sink->removed_before_us);
  return {{"messages", sink->ids.in_sink},    {"duplicates", sink->ids.duplicates},
          {"unsettled", sink->ids.unsettled}, {"ghosts", sink->ids.ghosts},
          {"missing", sink->ids.missing},     {"without_id", sink->without_id},
          {"removed", sink->removed},         {"removed_before", removed_before},
          {"uncompared", sink->uncompared},   {"others", sink->others}};
}

Json to_json(const VerifyLine& line) {
  const auto& found = line.found;
  Json faults = Json::array();
  for (const verify::Fault& fault : found.ledger.faults) faults.push_back(to_json(fault));
  return {{"name", line.name},
          {"ok", found.ok()},
          {"enqueued", found.enqueued},
          {"delivered", found.delivered()},
          {"filtered", found.filtered()},
          {"pending", found.ledger.pending},
          {"parked", found.parked.rows},
          {"discarded", found.discarded()},
          {"skipped", found.ledger.skipped},
          {"settlements", found.ledger.settlements},
          {"settlements_unchecked", found.ledger.unchecked},
          {"settlements_void", found.ledger.voided},
          {"sink", to_json(line.sink)},
          {"fault_count", found.ledger.fault_count},
          {"faults", faults}};
}

/// A person has looked at what continuous verification had found.
int acknowledge(const VerifyOptions& options, const Context& context) {
  if (options.sink || options.json || !options.inbox.empty() || !options.delivered.empty())
    throw Failure(kUsage, "--acknowledge compares nothing", "give it with --subscription only");
  const auto store = Context::checked_store(
      context.store_configuration(),
      acting("verify acknowledge", {{"subscription", given(options.subscription)}}));
  const auto verified = must(store->verified());
  const auto rows = chosen(options, must(must(store->catalog())->subscriptions()));
  for (const store::VerifiedRow& row : must(verified->list())) {
    const bool meant = std::any_of(rows.begin(), rows.end(),
                                   [&](const auto& one) { return one.id == row.subscription; });
    if (!meant || row.differences == 0) continue;
    // What a relay finds at this moment is for the next look.
    if (!must(verified->forget_differences(row)))
      throw Failure(kError, row.name + ": a relay has just compared more",
                    "look at the differences again, then repeat the command");
    print("{}: {} acknowledged\n", row.name, count("difference", row.differences));
  }
  return kOk;
}

int verify(const VerifyOptions& options, const Context& context) {
  if (options.acknowledge) return acknowledge(options, context);
  if (!options.delivered.empty() && !options.subscription)
    throw Failure(kUsage, "--delivered: by which subscription?", "--subscription NAME");
  if (options.inbox.empty() != options.consumer.empty())
    throw Failure(
        kUsage,
        options.inbox.empty() ? "--consumer: of which inbox?" : "--inbox: of which consumer?",
        "--inbox URL --consumer NAME");
  if (!options.inbox.empty() && !options.subscription)
    throw Failure(kUsage, "--inbox: by which subscription?", "--subscription NAME");
  Signals signals(kInterrupted);
  signals.end_at(1);  // this verb writes nothing
  const auto store = Context::checked_store(context.store_configuration());
  const auto rows = chosen(options, must(must(store->catalog())->subscriptions()));
  if (options.sink) {
    for (const store::SubscriptionRow& row : rows) must(sink::check_read_back(row.spec));
  }
  const auto reader = must(store->ledger_reader());
  std::vector<std::string> faults;
  Json subscriptions = Json::array();
  for (const store::SubscriptionRow& row : rows) {
    const VerifyLine line = verify_one(options, *reader, row);
    for (const verify::Fault& fault : line.found.ledger.faults)
      faults.push_back(fault_text(line.name, fault));
    if (options.json) {
      subscriptions.push_back(to_json(line));
    } else {
      print_text(line);
    }
  }
  if (options.json) print_json({{"ok", faults.empty()}, {"subscriptions", subscriptions}});
  if (!options.json && rows.empty()) print("no subscriptions: nothing was delivered\n");
  if (!faults.empty()) throw Failure(kCheckFailed, faults);
  return kOk;
}

}  // namespace

void add_verify(CLI::App& root, Context& context) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& verb = add_verb(
      root, "verify", "Show that what was delivered is what was committed; exit 3 when it is not",
      [options, &context] { return verify(*options, context); });
  add_option(verb, "--subscription", &options->subscription, "NAME", "Only this subscription");
  add_option(
      verb, "--sink", &options->sink, {},
      "Read the destination back too (sinks file and kafka): what is lost, what was never committed, what is there twice");
  add_option(
      verb, "--delivered", &options->delivered, "FILE",
      "The same with what this file holds, JSON lines or one id per line; may be given several times");
  add_option(verb, "--inbox", &options->inbox, "URL",
             "The same with the inbox of a consumer, in the store at this address");
  add_option(verb, "--inbox-schema", &options->inbox_schema, "NAME",
             "PostgreSQL schema of that store");
  add_option(verb, "--consumer", &options->consumer, "NAME", "The consumer, for --inbox");
  add_option(verb, "--inbox-keeps", &options->inbox_keeps, "DURATION",
             "How long that inbox keeps messages (inbox.retention)");
  add_option(
      verb, "--acknowledge", &options->acknowledge, {},
      "Set the number of differences that continuous verification has found (relay.verify) back to 0");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "Compares every settlement with the events it covers, and their totals with the log. Reads only, locks nothing, and\n"
      "runs beside relays and writers: it takes one moment, and what is not settled then is pending.");
  add_example(verb, "outbox verify --subscription orders");
}

}  // namespace outbox::cli
