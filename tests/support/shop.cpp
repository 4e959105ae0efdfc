#include "support/shop.hpp"

#include <optional>
#include <outbox/postgres.hpp>
#include <unordered_set>
#include <utility>

namespace outbox::test {
namespace {

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS shop_aggregate (key text PRIMARY KEY, version bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS shop_change (id text NOT NULL, key text NOT NULL, version bigint NOT NULL);)";

void enqueue(Pg& connection, Way way, const Attempt& attempt) {
  switch (way) {
    case Way::function:
      connection.exec(
          "SELECT outbox.enqueue('Order', $1, $2, $3::jsonb, '{\"shop\": \"test\"}', $4::uuid)",
          {attempt.key, attempt.type, attempt.body, attempt.id});
      return;
    case Way::view:
      connection.exec(
          "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
          "VALUES ('Order', $1, $2, $3)",
          {attempt.key, attempt.type, attempt.body});
      return;
    default: postgres::enqueue(connection.native(), to_event(attempt));
  }
}

std::int64_t lock_aggregate(Pg& connection, const std::string& key) {
  const auto rows =
      connection.exec("SELECT version FROM shop_aggregate WHERE key = $1 FOR UPDATE", {key});
  return std::stoll(*rows.at(0).at(0));
}

void record_change(Pg& connection, const Attempt& attempt) {
  connection.exec("INSERT INTO shop_change (id, key, version) VALUES ($1, $2, $3::bigint)",
                  {attempt.id, attempt.key, std::to_string(attempt.version)});
}

void set_version(Pg& connection, const std::string& key, std::int64_t version) {
  connection.exec("UPDATE shop_aggregate SET version = $2::bigint WHERE key = $1",
                  {key, std::to_string(version)});
}

}  // namespace

// ---- one transaction

/// What one transaction does to one aggregate.
struct Shop::Sale {
  std::string key;
  std::int64_t version{0};
  std::vector<Attempt> attempts;  ///< They are committed or rolled back with the transaction.
  std::vector<Attempt> undone;    ///< They are rolled back to a savepoint.
  postgres::Transaction* staging{nullptr};
  bool asynchronous{false};

  Attempt next(Random& random, const ShopOptions& options) {
    return new_attempt(key, ++version, options.types[random.below(options.types.size())],
                       options.padding);
  }
};

void Shop::sell(Pg& connection, Random& random, Sale& sale) {
  const auto count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    sale.attempts.push_back(sale.next(random, options_));
    const Attempt& attempt = sale.attempts.back();
    record_change(connection, attempt);
    if (sale.staging != nullptr) {
      sale.staging->enqueue(to_event(attempt));
    } else {
      Way way = options_.ways[random.below(options_.ways.size())];
      if (way == Way::transaction) way = Way::library;
      enqueue(connection, way, attempt);
    }
    random.dawdle(options_.longest_pause);
  }
}

/// Writes an event in a savepoint, and rolls it back or releases it.
void Shop::sell_in_savepoint(Pg& connection, Random& random, Sale& sale) {
  connection.exec("SAVEPOINT part");
  const Attempt attempt = sale.next(random, options_);
  record_change(connection, attempt);
  enqueue(connection, random.chance(50) ? Way::function : Way::view, attempt);
  if (random.chance(50)) {
    connection.exec("ROLLBACK TO SAVEPOINT part");
    sale.undone.push_back(attempt);
    --sale.version;
  } else {
    connection.exec("RELEASE SAVEPOINT part");
    sale.attempts.push_back(attempt);
  }
}

void Shop::one_transaction(Pg& connection, Random& random) {
  Sale sale;
  sale.key = "k" + std::to_string(random.below(static_cast<std::uint64_t>(options_.keys)));
  sale.asynchronous = random.chance(options_.asynchronous_percent);
  const bool rolls_back = random.chance(options_.rollback_percent);
  bool commit_sent = false;
  const auto record = [&](Attempt::End end) {
    const bool acknowledged = end == Attempt::End::committed;
    if (acknowledged && sale.asynchronous) end = Attempt::End::unknown;
    for (Attempt& attempt : sale.attempts) {
      attempt.end = end;
      attempt.acknowledged = acknowledged;
    }
    for (Attempt& attempt : sale.undone) attempt.end = Attempt::End::rolled_back;
    log_.add(sale.attempts);
    log_.add(sale.undone);
    if (journal_) journal_->write(sale.attempts);
    if (journal_) journal_->write(sale.undone);
  };
  try {
    const bool stages = options_.ways[random.below(options_.ways.size())] == Way::transaction;
    std::optional<postgres::Transaction> transaction;
    if (stages) {
      transaction.emplace(connection.native());
      sale.staging = &*transaction;
    } else {
      connection.exec("BEGIN");
    }
    if (sale.asynchronous) connection.exec("SET LOCAL synchronous_commit = off");
    if (random.chance(options_.early_xid_percent)) connection.exec("SELECT pg_current_xact_id()");
    random.dawdle(options_.longest_pause);
    sale.version = lock_aggregate(connection, sale.key);
    random.dawdle(options_.longest_pause);
    if (!stages && random.chance(options_.savepoint_percent))
      sell_in_savepoint(connection, random, sale);
    sell(connection, random, sale);
    set_version(connection, sale.key, sale.version);
    random.dawdle(options_.longest_pause);
    if (rolls_back) {
      if (transaction) {
        transaction->rollback();
      } else {
        connection.exec("ROLLBACK");
      }
      record(Attempt::End::rolled_back);
      return;
    }
    if (journal_) journal_->write(sale.attempts);
    commit_sent = true;
    if (transaction) {
      transaction->commit();
    } else {
      connection.exec("COMMIT");
    }
    record(Attempt::End::committed);
  } catch (const std::exception&) {
    // Only a lost connection is part of the scenario.
    record(commit_sent ? Attempt::End::unknown : Attempt::End::rolled_back);
    if (!connection.broken() || !options_.reconnect) throw;
  }
}

// ---- the shop

Shop::Shop(std::string url, ShopOptions options)
    : url_(std::move(url)), options_(std::move(options)) {
  if (!options_.journal.empty()) journal_.emplace(options_.journal);
  Pg connection(url_);
  connection.exec(kTables);
  for (int key = 0; key < options_.keys; ++key) {
    connection.exec("INSERT INTO shop_aggregate (key) VALUES ($1) ON CONFLICT DO NOTHING",
                    {"k" + std::to_string(key)});
  }
}

void Shop::start() {
  team_.start(options_.writers, [this](int number) { work(number); });
}

void Shop::work(int number) {
  Random random(options_.seed * 1000 + static_cast<std::uint64_t>(number));
  std::optional<Pg> connection;
  for (int done = 0;
       (options_.transactions == 0 || done < options_.transactions) && !team_.stopping();) {
    if (connection && connection->broken()) connection.reset();
    if (!connection) {
      try {
        connection.emplace(url_);
      } catch (const PgError&) {
        if (!options_.reconnect) throw;
        random.dawdle(std::chrono::milliseconds(50));
        continue;
      }
    }
    one_transaction(*connection, random);
    ++done;
  }
}

std::vector<Attempt> Shop::attempts() const {
  std::vector<Attempt> all = journal_ ? Journal::read(options_.journal) : log_.all();
  std::unordered_set<std::string> kept;
  for (const PgRow& row : Pg(url_).exec("SELECT id FROM shop_change")) kept.insert(*row[0]);
  for (Attempt& attempt : all) {
    const bool is_there = kept.contains(attempt.id);
    if (attempt.end == Attempt::End::unknown) {
      attempt.end = is_there ? Attempt::End::committed : Attempt::End::rolled_back;
    } else if (is_there != (attempt.end == Attempt::End::committed)) {
      throw std::logic_error("the shop's rows disagree with its record: " + attempt.id);
    }
  }
  return all;
}

// ---- a transaction that stays open

OpenSale::OpenSale(const std::string& url, const std::string& key) : connection_(url), key_(key) {
  connection_.exec(kTables);
  connection_.exec("INSERT INTO shop_aggregate (key) VALUES ($1) ON CONFLICT DO NOTHING", {key_});
  connection_.exec("BEGIN");
  connection_.exec("SET LOCAL outbox.wake = 'off'");  // LISTEN and NOTIFY cannot be prepared
  connection_.exec("SELECT pg_current_xact_id()");
  version_ = lock_aggregate(connection_, key_);
  add();
}

void OpenSale::add() {
  const Attempt attempt = new_attempt(key_, ++version_, "OrderPlaced", 20);
  record_change(connection_, attempt);
  enqueue(connection_, Way::function, attempt);
  set_version(connection_, key_, version_);
  attempts_.push_back(attempt);
}

void OpenSale::end(Attempt::End end) {
  for (Attempt& attempt : attempts_) attempt.end = end;
}

void OpenSale::commit() {
  connection_.exec("COMMIT");
  end(Attempt::End::committed);
}

void OpenSale::rollback() {
  connection_.exec("ROLLBACK");
  end(Attempt::End::rolled_back);
}

void OpenSale::prepare(const std::string& name) {
  connection_.exec("PREPARE TRANSACTION '" + name + "'");
  end(Attempt::End::committed);  // if the test commits it
}

}  // namespace outbox::test
