#include "relay/sink_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "sink/registry.hpp"

namespace outbox::relay {

SinkCache::~SinkCache() {
  collect_returned();
  for (Stuck& stuck : stuck_) {
    log::error("sink still does not return from a call, it is abandoned",
               {{"subscription", stuck.loop->row().spec.name}});
    SubscriptionLoop::leak(std::move(stuck.loop));
  }
}

void SinkCache::put_custom(const std::string& name, std::unique_ptr<Sink> sink) {
  entries_[name] = Entry{.retained = {.sink = std::move(sink), .unsettled_acks = {}}};
}

void SinkCache::put_custom(const std::string& group, Relay::MakeSink make) {
  makers_[group] = std::move(make);
}

Result<RetainedSink> SinkCache::take(const store::SubscriptionRow& row) {
  collect_returned();
  const std::string& name = row.spec.name;
  const bool stuck = std::any_of(stuck_.begin(), stuck_.end(), [&](const Stuck& one) {
    return one.loop->row().spec.name == name;
  });
  if (stuck) {
    return fail(
        Errc::unavailable, "subscription " + name + ": its sink does not return from a call",
        "the subscription starts again when the call has ended; if it never does, restart the relay");
  }
  const bool custom = row.spec.sink == "custom";
  Entry& entry = entries_[name];
  RetainedSink& retained = entry.retained;
  // If this is another subscription with the same name, what the former one delivered does not
  // count.
  if (entry.subscription != row.id) retained.unsettled_acks.clear();
  if (entry.subscription != row.id || entry.group != row.group) retained.retry_acks.clear();
  const bool same_settings =
      entry.subscription == row.id && entry.config_version == row.config_version;
  const auto maker = makers_.find(row.group);
  if (custom && !retained.sink && maker != makers_.end()) {
    OUTBOX_TRY(retained.sink, maker->second(row.spec));
  }
  if (retained.sink && (custom || same_settings)) return std::exchange(retained, {});
  // A sink with other settings may hold the same file or connection. What it acked stays delivered:
  // had the store not been lost, it would be settled, and the new settings would not deliver it
  // again.
  if (retained.sink) retained.sink->close();
  retained.sink.reset();
  if (custom) {
    return fail(Errc::not_found,
                "subscription " + name + ": sink is \"custom\" and no sink was given",
                "call Relay::use(\"" + name + "\", ...) before start()");
  }
  OUTBOX_TRY(auto sink, sink::make_sink(row.spec));
  return RetainedSink{.sink = std::move(sink),
                      .unsettled_acks = std::exchange(retained.unsettled_acks, {}),
                      .retry_acks = std::exchange(retained.retry_acks, {})};
}

void SinkCache::put_back(std::unique_ptr<SubscriptionLoop> loop) {
  if (loop->ended()) {
    (void)retain(*loop);
  } else {
    stuck_.push_back({.loop = std::move(loop)});
  }
}

SinkCache::Entry& SinkCache::retain(SubscriptionLoop& loop) {
  (void)loop.stop(std::chrono::nanoseconds(0), false);  // joins the thread, which has ended
  const store::SubscriptionRow& row = loop.row();
  return entries_[row.spec.name] = Entry{.retained = loop.take_sink(),
                                         .subscription = row.id,
                                         .config_version = row.config_version,
                                         .group = row.group};
}

void SinkCache::put_back(const store::SubscriptionRow& row, RetainedSink sink) {
  entries_[row.spec.name] = Entry{.retained = std::move(sink),
                                  .subscription = row.id,
                                  .config_version = row.config_version,
                                  .group = row.group};
}

void SinkCache::Entry::forget_outbox() {
  retained.unsettled_acks.clear();
  retained.retry_acks.clear();
  subscription = 0;
}

void SinkCache::forget_retries(const std::string& group) {
  for (auto& [name, entry] : entries_) {
    if (entry.group == group) entry.retained.retry_acks.clear();
  }
  for (Stuck& stuck : stuck_)
    stuck.of_former_lanes = stuck.of_former_lanes || stuck.loop->row().group == group;
}

void SinkCache::forget_outbox() {
  for (auto& [name, entry] : entries_) entry.forget_outbox();
  for (Stuck& stuck : stuck_) stuck.of_former_outbox = true;
}

void SinkCache::collect_returned() {
  const auto returned = std::stable_partition(stuck_.begin(), stuck_.end(),
                                              [](const Stuck& one) { return !one.loop->ended(); });
  for (auto one = returned; one != stuck_.end(); ++one) {
    Entry& entry = retain(*one->loop);
    if (one->of_former_outbox) entry.forget_outbox();
    if (one->of_former_lanes) entry.retained.retry_acks.clear();
    log::info("sink returned from its call", {{"subscription", one->loop->row().spec.name}});
  }
  stuck_.erase(returned, stuck_.end());
}

void SinkCache::close_all() {
  for (const auto& [name, entry] : entries_) close(name);
}

void SinkCache::close(const std::string& name) {
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.retained.sink) found->second.retained.sink->close();
}

}  // namespace outbox::relay
