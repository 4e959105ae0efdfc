#include "store/postgres/store.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "store/postgres/catalog.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/maintenance.hpp"
#include "store/postgres/marks.hpp"
#include "store/postgres/membership.hpp"
#include "store/postgres/progress.hpp"
#include "store/postgres/queries.hpp"
#include "store/postgres/reader.hpp"
#include "store/postgres/schema.hpp"
#include "store/postgres/wakeup.hpp"
#include "store/postgres/writer.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresStore final : public Store {
 public:
  explicit PostgresStore(StoreOptions options)
      : options_(std::move(options)), queries_(std::make_shared<const Queries>(options_.schema)) {}

  Result<std::vector<std::string>> migrate() override {
    auto connection = connect("migrate");
    if (!connection) return pass(connection);
    return postgres::migrate(*connection, *queries_, options_.schema);
  }

  Result<SchemaState> schema_state() override {
    auto connection = connect("check");
    if (!connection) return pass(connection);
    return postgres::schema_state(*connection, *queries_);
  }

  Status check() override {
    auto connection = connect("check");
    if (!connection) return pass(connection);
    return postgres::check(*connection, *queries_, options_.schema);
  }

  Result<std::unique_ptr<LogReader>> reader() override {
    return make<LogReader, PostgresReader>("reader", queries_, options_.schema, marks_);
  }
  Result<std::unique_ptr<Progress>> progress() override {
    return make<Progress, PostgresProgress>("settler", queries_, marks_);
  }
  Result<std::unique_ptr<Membership>> membership(std::string relay_name,
                                                 const EventId& relay) override {
    return make<Membership, PostgresMembership>("lease", queries_, std::move(relay_name), relay);
  }
  Result<std::unique_ptr<Catalog>> catalog() override {
    return make<Catalog, PostgresCatalog>("catalog", queries_);
  }
  Result<std::unique_ptr<Maintenance>> maintenance() override {
    return make<Maintenance, PostgresMaintenance>("maintenance", queries_);
  }
  Result<std::unique_ptr<Writer>> writer() override {
    return make<Writer, PostgresWriter>("writer", queries_);
  }

  Result<std::unique_ptr<Wakeup>> wakeup(bool armed) override {
    std::optional<Connection> own;
    if (armed) {
      auto connection = connect("wake-up");
      if (!connection) return pass(connection);
      own.emplace(std::move(*connection));
    }
    auto wakeup = PostgresWakeup::create(std::move(own), queries_);
    if (!wakeup) return pass(wakeup);
    return std::unique_ptr<Wakeup>(std::move(*wakeup));
  }

 private:
  [[nodiscard]] Result<Connection> connect(std::string_view purpose) const {
    return Connection::open(options_, purpose);
  }

  template <class Part, class Implementation, class... Args>
  [[nodiscard]] Result<std::unique_ptr<Part>> make(std::string_view purpose, Args&&... args) const {
    auto connection = connect(purpose);
    if (!connection) return pass(connection);
    return std::unique_ptr<Part>(
        std::make_unique<Implementation>(std::move(*connection), std::forward<Args>(args)...));
  }

  const StoreOptions options_;
  const std::shared_ptr<const Queries> queries_;
  /// What the settler learns the reader uses.
  const std::shared_ptr<MarkBook> marks_{std::make_shared<MarkBook>()};
};

}  // namespace

Result<std::unique_ptr<Store>> open(StoreOptions options) {
  if (Status status = check_schema_name(options.schema); !status) return pass(status);
  return std::unique_ptr<Store>(std::make_unique<PostgresStore>(std::move(options)));
}

Result<std::string> print_migrations(const StoreOptions& options) {
  if (Status status = check_schema_name(options.schema); !status) return pass(status);
  return print_migrations(options.schema);
}

}  // namespace outbox::store::postgres
