// What a relay or a worker answers to those who watch it: /metrics, /livez and /readyz
// (docs/guide/operations.md, docs/design/http.md).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <outbox/consumer.hpp>
#include <outbox/error.hpp>
#include <outbox/relay.hpp>
#include <string>
#include <vector>

#include "http/server.hpp"
#include "http/store_metrics.hpp"

namespace outbox::http {

struct MonitorOptions {
  Address address;
  std::string token{};  ///< Without it /metrics answers everybody who can connect.
  StoreMetrics::Options store{};
  std::string version;
  /// The relays and workers of this process are as these reports say. Called by several threads.
  std::function<std::vector<RelayReport>()> reports;
  /// The same of its consumers. May be empty.
  std::function<std::vector<ConsumerReport>()> consumers{};
};

/// Refuses an address that other machines can reach without a token.
[[nodiscard]] Status check_access(const Address& address, const std::string& token);

class Monitor {
 public:
  /// Listens until it is destroyed. Refuses an address that other machines can reach without a
  /// token.
  [[nodiscard]] static Result<std::unique_ptr<Monitor>> start(MonitorOptions options);
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;
  Monitor(Monitor&&) = delete;
  Monitor& operator=(Monitor&&) = delete;
  ~Monitor() = default;

  [[nodiscard]] const Address& address() const { return server_->address(); }

 private:
  explicit Monitor(MonitorOptions options);
  void add_routes(httplib::Server& server) const;
  [[nodiscard]] std::vector<ConsumerReport> consumer_reports() const;
  [[nodiscard]] std::string exposition() const;

  const MonitorOptions options_;
  const StoreMetrics store_;
  std::unique_ptr<Server> server_;  ///< The last, since its threads use the others.
};

}  // namespace outbox::http
