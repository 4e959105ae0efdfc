// A shop on PostgreSQL: writers that change an aggregate and enqueue what happened, in one transaction, in every way that
// applications do. Each locks its aggregate's row first and takes the next version from it; what it tried is recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/shop_options.hpp"
#include "support/testkit.hpp"
#include "support/writer_team.hpp"
#include "testkit/pg.hpp"

namespace outbox::test {

class Shop {
 public:
  /// Makes the shop's tables when they are not there.
  Shop(std::string url, ShopOptions options);

  void start();
  /// Waits until every writer has made its transactions.
  void join() { team_.join(); }
  void stop() { team_.stop(); }
  /// What stopped a writer; empty: nothing.
  [[nodiscard]] std::string trouble() const { return team_.trouble(); }
  [[nodiscard]] std::size_t tried() const { return log_.size(); }

  /// What was tried. After a crash the shop's own rows say what became of the transactions whose end nobody heard.
  [[nodiscard]] std::vector<Attempt> attempts() const;

 private:
  struct Sale;
  void work(int number);
  void one_transaction(Pg& connection, Random& random);
  void sell(Pg& connection, Random& random, Sale& sale);
  void sell_in_savepoint(Pg& connection, Random& random, Sale& sale);

  const std::string url_;
  const ShopOptions options_;
  AttemptLog log_;
  WriterTeam team_;
};

/// One event in a transaction that stays open as long as the test likes, on an aggregate of its own.
class OpenSale {
 public:
  /// Takes its transaction id before everything else.
  OpenSale(const std::string& url, const std::string& key);
  /// Writes one more event.
  void add();
  void commit();
  void rollback();
  /// Leaves it to COMMIT PREPARED on any connection.
  void prepare(const std::string& name);
  [[nodiscard]] std::vector<Attempt> attempts() const { return attempts_; }
  [[nodiscard]] Pg& connection() { return connection_; }

 private:
  void end(Attempt::End end);
  Pg connection_;
  std::string key_;
  std::int64_t version_{0};
  std::vector<Attempt> attempts_;
};

}  // namespace outbox::test
