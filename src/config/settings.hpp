// The tables of all settings except those of sinks (sink/kind.hpp). A new setting is one row; its
// default is in the structure.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <outbox/consumer.hpp>
#include <outbox/relay.hpp>
#include <outbox/schedule.hpp>
#include <outbox/subscription.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/setting.hpp"
#include "base/words.hpp"

namespace outbox {

template <>
inline constexpr std::array<std::string_view, 3> kWords<Feed>{"poll", "wal", "auto"};

}  // namespace outbox

namespace outbox::config {

/// A [task.TYPE] section: the handler of a type.
struct TaskSpec {
  std::string type;
  std::string queue{"default"};
  std::string handler{"exec"};
  std::vector<std::string> command{};
  std::chrono::milliseconds deadline{std::chrono::minutes(30)};
  Delays delays{};
  std::size_t max_running{0};
  Rate rate{};
  bool slow{false};
  /// The sink, settings and messages of the handlers http and smtp.
  SubscriptionSpec delivery{};
};

struct Config {
  /// The store, the relay and the subscriptions.
  RelayOptions relay{};
  std::chrono::milliseconds grace{std::chrono::seconds(10)};
  bool verify{false};
  std::chrono::milliseconds verify_after{std::chrono::minutes(1)};
  /// The verb sets `relay` and `queues`.
  WorkerOptions worker{};
  std::chrono::milliseconds worker_grace{std::chrono::seconds(30)};
  std::vector<TaskSpec> tasks{};
  std::vector<ConsumerSpec> consumers{};
  std::string http_listen{};  ///< Empty: nothing listens.
  std::string http_token{};
  std::chrono::milliseconds metrics_interval{std::chrono::seconds(15)};
  std::string log_level{"info"};
  std::string log_format{"text"};
};

[[nodiscard]] const SettingRows<Config>& settings();
/// The settings of a [subscription.NAME] section.
[[nodiscard]] const SettingRows<SubscriptionSpec>& subscription_settings();

/// The settings of a [task.TYPE] section.
[[nodiscard]] const SettingRows<TaskSpec>& task_settings();
/// The settings of a subscription that a handler which is a sink has, too.
[[nodiscard]] SettingRows<SubscriptionSpec> task_message_settings();
/// Settings of such a sink that the worker decides, and why the file must not.
[[nodiscard]] std::map<std::string, std::string> settled_by_worker(std::string_view handler);

/// The settings of a [consumer.NAME] section.
[[nodiscard]] const SettingRows<ConsumerSpec>& consumer_settings();

/// The settings of a [schedule.NAME] section.
[[nodiscard]] const SettingRows<Schedule>& schedule_settings();

/// Null if there is no such setting.
[[nodiscard]] const SettingRow<Config>* find_setting(std::string_view path);

/// The variable's name, such as "OUTBOX_RELAY_PAGE".
[[nodiscard]] std::string environment_name(const Setting& setting);

}  // namespace outbox::config
