#include "store/subscription_changes.hpp"

#include "base/error.hpp"
#include "event/spec.hpp"
#include "event/task_queue.hpp"
#include "store/former_name.hpp"

namespace outbox::store {
namespace {

constexpr const char* kRenamedOrigin = "outbox:renamed";

}  // namespace

Error renamed(std::string_view name, std::string_view now) {
  Error error = fail(Errc::already_exists,
                     "subscription " + std::string(name) + " was renamed to " + std::string(now) +
                         ": nothing is created",
                     "name it [subscription." + std::string(now) +
                         "] in the configuration; or, for a second one that delivers everything "
                         "again: outbox subscription create " +
                         std::string(name))
                    .value();
  error.origin = kRenamedOrigin;
  return error;
}

bool is_renamed(const Error& error) noexcept { return error.origin == kRenamedOrigin; }

tl::unexpected<Error> replay_runs(std::string_view name) {
  return fail(Errc::unavailable,
              "subscription " + std::string(name) + ": a replay of it is loading or running",
              "wait for its end, or stop it: outbox replay --list, outbox replay --stop");
}

tl::unexpected<Error> name_taken(std::string_view name) {
  return fail(Errc::already_exists, "there is a subscription " + std::string(name) + " already",
              "outbox subscription list");
}

Result<SubscriptionSpec> renamed_spec(std::string_view name, std::string_view config,
                                      std::string_view new_name) {
  OUTBOX_TRY(SubscriptionSpec spec, event::from_json(name, config));
  spec.name = new_name;
  Status status = event::validate(spec);
  if (status) return spec;
  if (status.error().hint.empty()) status.error().hint = "a name such as orders-v2";
  return pass(status);
}

}  // namespace outbox::store
