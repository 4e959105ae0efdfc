// Subscriptions, what they have done and who delivers them, in the tables subscription, settlement and relay.
#pragma once

#include <memory>
#include <string>

#include "store/catalog.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

class PostgresCatalog final : public Catalog {
 public:
  PostgresCatalog(Connection connection, std::shared_ptr<const Queries> queries)
      : connection_(std::move(connection)), queries_(std::move(queries)) {}

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
  enum class Applied : std::uint8_t { nothing, changed, again };

  [[nodiscard]] Status mark_the_start(const std::string& name);
  [[nodiscard]] Result<Applied> apply_once(const SubscriptionSpec& spec, const std::string& config);
  [[nodiscard]] Status change(const Query& update, Params params, std::string_view which);
  [[nodiscard]] Status add_pending(SubscriptionProgress& progress, const Strand& strand,
                                   std::int64_t limit, std::int64_t& oldest_us);

  Connection connection_;
  std::shared_ptr<const Queries> queries_;
};

}  // namespace outbox::store::postgres
