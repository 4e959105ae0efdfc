// A shop on PostgreSQL. Its writers change an aggregate and enqueue an event in one transaction, in
// all ways in which applications do it. Each writer locks the row of its aggregate first and takes
// the next version from it. All attempts are recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/journal.hpp"
#include "support/ledger.hpp"
#include "support/pg.hpp"
#include "support/random.hpp"
#include "support/shop_options.hpp"
#include "support/writer_team.hpp"

namespace outbox::test {

class Shop {
 public:
  /// Creates the tables of the shop if they do not exist.
  Shop(std::string url, ShopOptions options);

  void start();
  /// Waits until every writer has finished its transactions.
  void join() { team_.join(); }
  void stop() { team_.stop(); }
  /// The first error of a writer; empty if there was none.
  [[nodiscard]] std::string trouble() const { return team_.trouble(); }
  [[nodiscard]] std::size_t tried() const { return log_.size(); }

  /// All attempts. The rows of the shop decide how an attempt ended whose COMMIT got no answer.
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
  std::optional<Journal> journal_;
  WriterTeam team_;
};

/// Events in a transaction that the test keeps open, on an aggregate of its own.
class OpenSale {
 public:
  /// Takes a transaction id first, then writes an event.
  OpenSale(const std::string& url, const std::string& key);
  /// Writes one more event.
  void add();
  void commit();
  void rollback();
  /// Executes PREPARE TRANSACTION, so that any connection can execute COMMIT PREPARED.
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
