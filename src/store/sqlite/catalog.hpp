// Subscriptions and what is known about them.
#pragma once

#include <utility>

#include "base/process.hpp"
#include "store/catalog.hpp"
#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

class SqliteCatalog final : public Catalog {
 public:
  explicit SqliteCatalog(Connection connection)
      : connection_(std::move(connection)), self_(this_process()) {}

  [[nodiscard]] Result<std::string> identity() override;
  [[nodiscard]] Result<std::vector<SubscriptionRow>> subscriptions() override;
  [[nodiscard]] Result<bool> apply(const SubscriptionSpec& spec) override;
  [[nodiscard]] Status pause(std::string_view name, std::string_view reason) override;
  [[nodiscard]] Status resume(std::string_view name) override;
  [[nodiscard]] Result<bool> stop(std::int32_t id, std::int64_t generation, std::string_view reason,
                                  std::int64_t seq, const EventId& event) override;
  [[nodiscard]] Status report_trouble(std::int32_t id, std::int64_t generation,
                                      std::string_view trouble) override;
  [[nodiscard]] Result<SubscriptionProgress> progress(const SubscriptionRow& subscription,
                                                      std::int64_t pending_limit) override;
  [[nodiscard]] Status add_totals(SubscriptionProgress& progress) override;
  [[nodiscard]] Result<std::vector<RelayRow>> relays() override;

 private:
  [[nodiscard]] Status create(const SubscriptionSpec& spec, std::string_view config);
  [[nodiscard]] Status add_cursor(SubscriptionProgress& progress, std::int64_t& position);
  [[nodiscard]] Status add_pending(SubscriptionProgress& progress, std::int64_t position,
                                   std::int64_t limit);
  /// Runs an UPDATE ... RETURNING id; no row: there is no such subscription.
  /// Whether it found any row.
  [[nodiscard]] static Result<bool> changes(Statement& update);
  [[nodiscard]] static Status change(Statement& update, const std::string& which);

  Connection connection_;
  const ProcessIdentity self_;
};

}  // namespace outbox::store::sqlite
