#include "sink/postgres/config.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "pg/url.hpp"
#include "sink/login_settings.hpp"
#include "sink/postgres/postgres_sink.hpp"

namespace outbox::sink::postgres {
namespace {

using namespace std::chrono_literals;

SettingRows<PostgresSettings> rows() {
  using S = PostgresSettings;
  return joined<S>({
      {{"url", &S::url, Traits{.type = SettingType::url, .required = true, .secret = true},
        "The database: postgresql://host:port/database, or a connection string of libpq. Several hosts with commas: the one that accepts writes is used."}},
      login_rows<S>(),
      {{"table", &S::table, Traits{.required = true},
        "The table, as schema.table or as found by the login's search_path. A template: events may go to several tables."},
       {"create", &S::create, "Makes tables that are missing."},
       {"dedup_window", &S::dedup_window, Traits{.range = {0s, 3650 * 24h}},
        "The ids of events are kept for so long: one that is sent again within it adds no row. 0: none are, a unique index on the column with {id} takes their place."},
       {"delivered_table", &S::delivered_table, "The table of these ids, in the same database."},
       {"batch", &S::batch, Traits{.range = {1, 10'000}}, "Most events in one transaction."},
       {"max_in_flight", &S::max_in_flight, Traits{.range = {1, 100'000}},
        "Events taken and not yet committed."},
       {"connect_timeout", &S::connect_timeout, Traits{.range = {1s, 1min}},
        "For connecting and logging in, for each address."},
       {"deadline", &S::deadline, Traits{.range = {1s, 1h}},
        "Without an answer for so long the connection counts as lost. The server gives up a statement earlier."}},
  });
}

/// Refuses parameters of the URL that settings replace.
void check_parameters(const std::string& url, FieldErrors& errors) {
  struct Owned {
    std::string_view keyword;
    std::string_view allowed;
    const char* hint;
  };
  constexpr std::array<Owned, 3> kOwned{{
      {"connect_timeout", "", "set postgres.connect_timeout instead"},
      {"tcp_user_timeout", "", "it follows from postgres.deadline: leave it out"},
      {"target_session_attrs", "read-write",
       "the sink writes, so it is always read-write: leave it out"},
  }};
  const pg::Options parsed(PQconninfoParse(url.c_str(), nullptr));
  for (const auto* option = parsed.get(); option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val == nullptr) continue;
    for (const Owned& owned : kOwned) {
      if (owned.keyword == option->keyword && owned.allowed != option->val)
        errors.add({"postgres.url", "has the parameter " + std::string(owned.keyword), owned.hint});
    }
  }
}

void check_url(const std::string& url, FieldErrors& errors) {
  if (url.empty()) return;  // An error says so already.
  if (const Status valid = pg::check_url(url); !valid)
    return errors.add("postgres.url", valid.error());
  check_parameters(url, errors);
}

void check_others(const Texts& settings, FieldErrors& errors) {
  std::vector<std::string> names;
  for (const auto& row : rows()) names.push_back(row.setting.name);
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const auto& [name, text] : settings) {
    if (!name.starts_with(kColumnPrefix)) errors.add(unknown_setting("postgres", name, known));
  }
}

void check_identity(const PostgresSettings& settings, const std::vector<Column>& columns,
                    FieldErrors& errors) {
  if (settings.dedup_window.count() > 0 || find_id(columns) != nullptr) return;
  errors.add({"postgres.dedup_window", "is 0, and no column has the event's id",
              "add id = \"{id}\" to postgres.columns, with a unique index on that column"});
}

std::optional<TableName> read_delivered(const std::string& text, FieldErrors& errors) {
  constexpr const char* kField = "postgres.delivered_table";
  const auto read = TableTemplate::compile(kField, text);
  if (!read) {
    errors.add(read.error());
    return std::nullopt;
  }
  auto fixed = read->fixed();
  if (!fixed) {
    errors.add({kField, "is the same for all events of a subscription",
                "one table has the ids of all subscriptions"});
    return std::nullopt;
  }
  if (const Status legal = check_name(*fixed); !legal) {
    errors.add(kField, legal.error());
    return std::nullopt;
  }
  return fixed;
}

std::optional<TableTemplate> read_table(const std::string& text, FieldErrors& errors) {
  constexpr const char* kField = "postgres.table";
  if (text.empty()) return std::nullopt;  // An error says so already.
  auto read = TableTemplate::compile(kField, text);
  if (!read) {
    errors.add(read.error());
    return std::nullopt;
  }
  if (const auto fixed = read->fixed()) {
    if (const Status legal = check_name(*fixed); !legal) errors.add(kField, legal.error());
  }
  return std::move(*read);
}

void check(const PostgresSettings& settings, FieldErrors& errors) {
  (void)read_options(settings, {}, errors);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::make_network
Result<std::unique_ptr<NetworkSink>> make(PostgresSettings settings, const SubscriptionSpec& spec) {
  OUTBOX_TRY(auto options, read_valid(read_options, settings, spec.name));
  return std::make_unique<PostgresSink>(std::move(*options));
}

}  // namespace

std::optional<PostgresOptions> read_options(const PostgresSettings& settings,
                                            const std::string& subscription, FieldErrors& errors) {
  check_url(settings.url, errors);
  check_others(settings.columns, errors);
  auto columns = read_columns(settings.columns, errors);
  check_identity(settings, columns, errors);
  auto table = read_table(settings.table, errors);
  auto delivered = read_delivered(settings.delivered_table, errors);
  if (!errors.empty() || !table || !delivered) return std::nullopt;
  return PostgresOptions{.plain = settings,
                         .subscription = subscription,
                         .table = std::move(*table),
                         .delivered_table = std::move(*delivered),
                         .columns = std::move(columns)};
}

SinkKind kind() {
  return make_kind<PostgresSettings>(
      {.name = "postgres",
       .help = "inserts events into a table of another PostgreSQL database, each exactly once",
       .rows = rows(),
       .passed_on = PassedOn{
           .help =
               "`columns` is a table: each key is a column, its value the template of what it gets; see [docs/sinks/postgres.md](../sinks/postgres.md#columns).",
           .names_file = [](std::string_view, std::string_view) { return false; },
           .is_secret = [](std::string_view) { return false; }},
       .others = [](PostgresSettings& s) -> Texts& { return s.columns; },
       .check = check,
       .make_network = make});
}

}  // namespace outbox::sink::postgres
