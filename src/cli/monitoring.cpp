#include "cli/monitoring.hpp"

#include <utility>

#include "base/log.hpp"
#include "cli/exit.hpp"

namespace outbox::cli {

Status check_monitor(const config::Config& config) {
  if (config.http_listen.empty()) return {};
  auto address = http::parse_address(config.http_listen);
  if (address) return http::check_access(*address, config.http_token);
  address.error().message = "http.listen: " + address.error().message;
  return tl::unexpected(address.error());
}

std::unique_ptr<http::Monitor> start_monitor(
    const config::Loaded& loaded, std::function<std::vector<RelayReport>()> reports,
    std::function<std::vector<ConsumerReport>()> consumers) {
  const config::Config& config = loaded.config;
  if (config.http_listen.empty()) return nullptr;
  auto address = http::parse_address(config.http_listen);
  if (!address) {
    address.error().message = "http.listen: " + address.error().message;
    throw Failure(kUsage, address.error().message, address.error().hint);
  }
  auto monitor = must(http::Monitor::start({.address = *address,
                                            .token = config.http_token,
                                            .store = {.store = {.url = config.relay.store_url,
                                                                .schema = config.relay.schema,
                                                                .application = "outbox metrics"},
                                                      .interval = config.metrics_interval,
                                                      .retention = config.relay.retention},
                                            .version = OUTBOX_VERSION,
                                            .reports = std::move(reports),
                                            .consumers = std::move(consumers)}));
  log::info("answers /metrics, /livez and /readyz",
            {{"url", "http://" + monitor->address().text()}});
  return monitor;
}

}  // namespace outbox::cli
