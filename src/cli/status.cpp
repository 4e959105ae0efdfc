// outbox status: what every subscription and relay is doing.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "cli/exit.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

/// More than any log holds. The stores count one more than the limit.
constexpr std::uint64_t kLargestLimit = std::numeric_limits<std::int64_t>::max() - 1;

struct Options {
  std::uint64_t limit{100'000};
  bool json{false};
};

struct Line {
  store::SubscriptionRow row;
  store::SubscriptionProgress progress;
};

struct View {
  std::string store;
  std::vector<Line> subscriptions;
  std::vector<store::RelayRow> relays;
};

View look(const Options& options, const config::Loaded& loaded) {
  const auto store = Context::checked_store(loaded);
  const auto catalog = must(store->catalog());
  View view{
      .store = store::shown_url(loaded.config.relay.store_url), .subscriptions = {}, .relays = {}};
  const auto limit = std::min(options.limit, kLargestLimit);
  for (auto& row : must(catalog->subscriptions())) {
    auto progress = must(catalog->progress(row, static_cast<std::int64_t>(limit)));
    must(catalog->add_totals(progress));
    view.subscriptions.push_back({.row = std::move(row), .progress = std::move(progress)});
  }
  view.relays = must(catalog->relays());
  return view;
}

/// The relay's word on an active subscription, which counts while a relay is there to take it back.
std::string trouble_of(const View& view, const store::SubscriptionRow& row) {
  const bool told = row.state == store::SubscriptionState::active &&
                    std::any_of(view.relays.begin(), view.relays.end(),
                                [](const auto& relay) { return relay.owner && relay.alive; });
  return told ? row.trouble : std::string();
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string pending_text(const store::SubscriptionProgress& progress) {
  return std::to_string(progress.pending) + (progress.pending_capped ? "+" : "");
}

void print_subscriptions(const View& view) {
  if (view.subscriptions.empty()) {
    print("no subscriptions (hint: outbox subscription apply -c outbox.toml)\n");
    return;
  }
  Table table({"SUBSCRIPTION", "STATE", "SINK", "PENDING", "LAST SETTLED", "OLDEST PENDING"});
  for (const auto& [row, progress] : view.subscriptions) {
    table.add({row.spec.name, store::to_string(row.state), row.spec.sink, pending_text(progress),
               or_dash(progress.last_settled_at), or_dash(progress.oldest_pending_at)});
    if (!row.reason.empty()) table.note("  reason: " + row.reason);
    if (const std::string trouble = trouble_of(view, row); !trouble.empty())
      table.note("  waits since " + row.trouble_since + ": " + trouble);
    if (row.stopped_seq) {
      table.note("  stopped at event " + row.stopped_event + " (seq " +
                 std::to_string(*row.stopped_seq) + "); outbox subscription resume " +
                 row.spec.name + " tries again");
    }
  }
  table.print();
}

void print_relays(const View& view) {
  if (view.relays.empty()) {
    print("no relays (hint: outbox relay)\n");
    return;
  }
  Table table({"RELAY", "ROLE", "ALIVE", "GENERATION", "HEARTBEAT"});
  for (const auto& relay : view.relays) {
    table.add({relay.name, relay.owner ? "delivers" : "waits", relay.alive ? "yes" : "no",
               std::to_string(relay.generation), or_dash(relay.heartbeat_at)});
  }
  table.print();
}

void put(Json& json, const View& view, const Line& line) {
  const auto& [row, progress] = line;
  const std::string trouble = trouble_of(view, row);
  json.object().member("name", row.spec.name).member("state", store::to_string(row.state));
  json.member_or_null("reason", row.reason).member_or_null("trouble", trouble);
  json.member_or_null("trouble_since", trouble.empty() ? std::string() : row.trouble_since);
  json.member("sink", row.spec.sink).key("stopped_event");
  if (row.stopped_seq) {
    json.object().member("id", row.stopped_event).member("seq", *row.stopped_seq).end();
  } else {
    json.null();
  }
  json.member("pending", progress.pending).member("pending_is_more", progress.pending_capped);
  json.member("delivered", progress.acked)
      .member("filtered", progress.filtered)
      .member("generation", progress.generation);
  json.member("config_version", row.config_version)
      .member_or_null("last_settled_at", progress.last_settled_at);
  json.member_or_null("oldest_pending_at", progress.oldest_pending_at).end();
}

void print_json(const View& view) {
  Json json;
  json.object().member("store", view.store).key("subscriptions").array();
  for (const auto& line : view.subscriptions) put(json, view, line);
  json.end().key("relays").array();
  for (const auto& relay : view.relays) {
    json.object().member("id", relay.id).member("name", relay.name).member("owner", relay.owner);
    json.member("alive", relay.alive).member("generation", relay.generation);
    json.member_or_null("heartbeat_at", relay.heartbeat_at).end();
  }
  json.end().end().print();
}

int status(const Options& options, const Context& context) {
  if (options.limit == 0)
    throw Failure(kUsage, "--limit 0: nothing would be counted (hint: 1 or more)");
  const View view = look(options, context.configuration(Subscriptions::unused));
  if (options.json) {
    print_json(view);
    return kOk;
  }
  print("store {}\n\n", view.store);
  print_subscriptions(view);
  print("\n");
  print_relays(view);
  return kOk;
}

}  // namespace

void add_status(Command& root, Context& context) {
  auto options = std::make_shared<Options>();
  Command verb = root.verb("status", "Show what every subscription and relay is doing");
  verb.option("--limit", &options->limit, "N",
              "Count at most so many pending events per subscription");
  verb.option("--json", &options->json, {}, "As JSON");
  verb.run([options, &context] { return status(*options, context); });
}

}  // namespace outbox::cli
