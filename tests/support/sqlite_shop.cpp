#include "support/sqlite_shop.hpp"

#include <outbox/sqlite.hpp>
#include <utility>

#include "support/store.hpp"

namespace outbox::test {

void migrate_sqlite(const std::string& path) {
  (void)migrated_store("sqlite:" + path, "outbox", "outbox test");
}

SqliteShop::SqliteShop(std::string path, ShopOptions options)
    : path_(std::move(path)), options_(std::move(options)) {
  SqliteFile file(path_);
  file.exec(
      "CREATE TABLE IF NOT EXISTS shop_aggregate (key TEXT PRIMARY KEY, version INTEGER NOT NULL DEFAULT 0)");
  for (int key = 0; key < options_.keys; ++key) {
    file.exec("INSERT OR IGNORE INTO shop_aggregate (key) VALUES (?)", {"k" + std::to_string(key)});
  }
}

void SqliteShop::start() {
  team_.start(options_.writers, [this](int number) {
    SqliteFile file(path_);
    Random random(options_.seed * 1000 + static_cast<std::uint64_t>(number));
    for (int done = 0;
         (options_.transactions == 0 || done < options_.transactions) && !team_.stopping();
         ++done) {
      one_transaction(file, random);
      random.dawdle(options_.longest_pause);
    }
  });
}

void SqliteShop::one_transaction(SqliteFile& file, Random& random) {
  std::vector<Attempt> attempts;
  Attempt::End end = Attempt::End::rolled_back;
  try {
    if (sell(file, random, attempts)) end = Attempt::End::committed;
  } catch (const Exception& error) {
    if (!options_.reconnect) throw;
    if (error.error().effect == Effect::unknown) end = Attempt::End::unknown;
    ++refused_;
  }
  for (Attempt& attempt : attempts) attempt.end = end;
  log_.add(attempts);
}

/// Returns false if the transaction was rolled back.
bool SqliteShop::sell(SqliteFile& file, Random& random, std::vector<Attempt>& attempts) {
  const std::string key =
      "k" + std::to_string(random.below(static_cast<std::uint64_t>(options_.keys)));
  const bool rolls_back = random.chance(options_.rollback_percent);
  sqlite::Transaction transaction(file.native());
  std::int64_t version =
      std::stoll(file.value("SELECT version FROM shop_aggregate WHERE key = ?", {key}));
  const auto count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    attempts.push_back(new_attempt(
        key, ++version, options_.types[random.below(options_.types.size())], options_.padding));
    const Attempt& attempt = attempts.back();
    if (random.chance(50)) {
      file.exec(
          "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) VALUES ('Order', ?, ?, ?)",
          {attempt.key, attempt.type, attempt.body});
    } else {
      transaction.enqueue(to_event(attempt));
    }
  }
  file.exec("UPDATE shop_aggregate SET version = CAST(? AS INTEGER) WHERE key = ?",
            {std::to_string(version), key});
  if (rolls_back) {
    transaction.rollback();
  } else {
    transaction.commit();
  }
  return !rolls_back;
}

}  // namespace outbox::test
