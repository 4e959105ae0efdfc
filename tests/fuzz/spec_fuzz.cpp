// Reads a subscription as the store has it, and uses its filter and its retry policy:
// CONFIGURATION~EVENT TYPE~AGGREGATE TYPE~HEADERS.
#include <outbox/task.hpp>
#include <string>

#include "format/render.hpp"
#include "fuzz/fuzz.hpp"
#include "subscription/filter.hpp"
#include "subscription/group.hpp"
#include "subscription/retry_policy.hpp"
#include "subscription/spec.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outbox;
  const auto parts = fuzz::split_parts(fuzz::to_text(data, size), 4);
  const auto spec = subscription::from_json("orders", parts[0]);
  if (!spec) {
    OUTBOX_PROPERTY(!spec.error().message.empty());
    return 0;
  }
  const std::string stored = subscription::to_json(*spec);
  const auto again = subscription::from_json("orders", stored);
  OUTBOX_PROPERTY(again && subscription::to_json(*again) == stored);
  OUTBOX_PROPERTY(subscription::differences(*spec, *again).empty());
  OUTBOX_PROPERTY(subscription::differences(*spec, {}).empty() ==
                  (stored == subscription::to_json({})));

  const subscription::Filter filter(*spec);
  EventView event;
  event.event_type = parts[1];
  event.aggregate_type = parts[2];
  event.headers = parts[3];
  const bool no_rules =
      spec->event_types.empty() && spec->aggregate_types.empty() && spec->match_headers.empty();
  const bool task = event.aggregate_type.starts_with(kTaskPrefix);
  OUTBOX_PROPERTY(!no_rules || filter.matches(event) == !task);
  (void)subscription::choose_group(*spec);
  if (!subscription::validate(*spec)) return 0;
  OUTBOX_PROPERTY(format::Renderer::create(*spec).has_value());
  const subscription::RetryPolicy policy(*spec);
  for (const std::size_t attempts :
       {std::size_t{1}, std::size_t{2}, std::size_t{63}, spec->max_attempts}) {
    const auto pause = policy.pause_after(attempts, size);
    OUTBOX_PROPERTY(!pause || pause->count() >= 0);
  }
  return 0;
}
