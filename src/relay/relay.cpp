// The keeper: opens the store, owns the lanes or waits for them, runs one tenure after another until it is asked to stop.
#include "outbox/relay.hpp"

#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/outage.hpp"
#include "base/thread.hpp"
#include "event/spec.hpp"
#include "relay/configuration.hpp"
#include "relay/lease_keeper.hpp"
#include "relay/pending.hpp"
#include "relay/tenure.hpp"
#include "sink/registry.hpp"
#include "store/store.hpp"
#include "store/text.hpp"

namespace outbox {
namespace {

using relay::TimePoint;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kVacancyCheck{100};
constexpr std::chrono::milliseconds kTendEvery{1000};
constexpr std::chrono::seconds kMaintainEvery{30};
constexpr std::chrono::milliseconds kRunOnceCheck{5};
/// After request_stop() alone.
constexpr std::chrono::seconds kDefaultGrace{10};
/// A tenure that lasted so long was a good one: the next trouble is new.
constexpr std::chrono::seconds kSoundTenure{2};
/// After the store was lost the sinks may take this long to say what became of what they have in flight.
constexpr std::chrono::seconds kLostStoreGrace{5};
constexpr BackoffPolicy kReconnect{.first = std::chrono::milliseconds(50),
                                   .longest = std::chrono::seconds(5)};

std::string default_name() {
  char host[256] = "localhost";
  (void)gethostname(host, sizeof host - 1);
  return std::string(host) + ":" + std::to_string(getpid());
}

Status check_options(const RelayOptions& options) {
  const auto bad = [](const std::string& what, const std::string& hint) {
    return Status(fail(Errc::invalid_argument, "relay options: " + what, hint));
  };
  if (options.store_url.empty())
    return bad("store_url is empty", "postgresql://... or sqlite:PATH");
  if (options.page_rows < 1 || options.page_rows > 10000)
    return bad("page_rows is out of range", "1 to 10000");
  if (options.window_events < options.page_rows) {
    return bad("window_events is smaller than page_rows", "the window must hold at least one page");
  }
  if (options.window_bytes < 1024) return bad("window_bytes is too small", "at least 1 KiB");
  if (options.settle_events < 1) return bad("settle_events is zero", "at least 1");
  if (options.settle_interval.count() < 0)
    return bad("settle_interval is negative", "0 ms or more");
  if (options.lease < std::chrono::seconds(1)) return bad("lease is too short", "at least 1 s");
  if (options.idle_poll < std::chrono::milliseconds(1))
    return bad("idle_poll is too short", "at least 1 ms");
  for (const SubscriptionSpec& spec : options.subscriptions) {
    if (Status status = event::validate(spec); !status) return status;
    if (Status status = sink::check_settings(spec); !status) return status;
  }
  return {};
}

}  // namespace

class Relay::Impl {
 public:
  explicit Impl(RelayOptions options) : options_(std::move(options)) {
    if (options_.name.empty()) options_.name = default_name();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() { (void)stop(std::chrono::milliseconds(0)); }

  Status use(std::string_view subscription, std::unique_ptr<Sink> sink) {
    const std::scoped_lock control(control_);
    if (keeper_.joinable()) return fail(Errc::invalid_argument, "Relay::use() after start()");
    if (!sink) return fail(Errc::invalid_argument, "Relay::use(): sink is null");
    shelf_.put_custom(std::string(subscription), std::move(sink));
    return {};
  }

  Status start(std::stop_token token) {
    const std::scoped_lock control(control_);
    if (keeper_.joinable()) return {};
    {
      // Before anything that takes time: who asks it to stop meanwhile is heard.
      const std::scoped_lock lock(mutex_);
      stop_asked_ = false;
      grace_ = kDefaultGrace;
      place_ = Place::unknown;
    }
    auto store = store::open_store(
        {.url = options_.store_url, .schema = options_.schema, .application = "outbox relay"});
    if (!store) return pass(store);
    store_ = std::move(*store);
    if (Status status = store_->check(); !status) return status;
    stop_report_ = {.drained = true, .abandoned = 0};
    configured_under_.reset();
    keeper_ = start_thread("ob-keeper", [this](const std::stop_token&) { keep(); });
    on_token_.emplace(std::move(token), [this] { request_stop(); });
    std::unique_lock lock(mutex_);
    bell_.wait(lock, [this] { return place_ != Place::unknown; });
    return {};
  }

  void request_stop() noexcept {
    {
      const std::scoped_lock lock(mutex_);
      stop_asked_ = true;
    }
    bell_.notify_all();
  }

  StopReport stop(std::chrono::milliseconds grace) {
    ask_to_stop(grace);
    const std::scoped_lock control(control_);
    ask_to_stop(grace);  // again: a start() that was before us has begun anew
    if (keeper_.joinable()) keeper_.join();
    on_token_.reset();
    return stop_report_;
  }

  Status run_once(std::chrono::milliseconds limit) {
    const TimePoint until = Clock::now() + limit;
    if (Status status = start({}); !status) return status;
    Status status = wait_until_nothing_pends(until);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    (void)stop(status ? std::max(left, std::chrono::milliseconds(0))
                      : std::chrono::milliseconds(0));
    return status;
  }

  RelayReport report() const {
    RelayReport report;
    const std::scoped_lock lock(mutex_);
    report.owner = tenure_ != nullptr;
    report.generation = generation_;
    report.last_error = last_error_;
    if (tenure_ != nullptr) tenure_->report(report);
    return report;
  }

 private:
  /// Where it stands among the relays. start() returns when that is known.
  enum class Place : std::uint8_t {
    unknown,
    delivering,  ///< Its configuration is applied.
    waiting,     ///< Another relay delivers.
    nowhere,     ///< Cannot do either, for now.
  };

  void ask_to_stop(std::chrono::milliseconds grace) {
    {
      const std::scoped_lock lock(mutex_);
      grace_ = grace;
      stop_asked_ = true;
    }
    bell_.notify_all();
  }

  Status wait_until_nothing_pends(TimePoint until) {
    auto catalog = store_->catalog();
    if (!catalog) return pass(catalog);
    while (true) {
      auto pending = relay::pending_of_active(**catalog);
      if (!pending) {
        pending.error().message = "run_once: " + pending.error().message;
        return pass(pending);
      }
      if (pending->empty() && is_in_place()) return {};
      if (Clock::now() >= until) {
        const std::string what = pending->empty()
                                     ? "it could not begin"
                                     : "events of subscription " + *pending + " are still pending";
        return fail(Errc::deadline_exceeded, "run_once: " + what, last_error());
      }
      std::unique_lock lock(mutex_);
      bell_.wait_for(lock, kRunOnceCheck);
    }
  }

  // ---- the keeper's thread

  void keep() {
    int failures = 0;
    while (!stopping()) {
      const Status status = one_round();
      if (status) {
        failures = 0;
        continue;
      }
      if (stopping()) break;
      note_place(Place::nowhere);
      note_trouble(status.error());
      if (!trust_.holds(Clock::now())) shelf_.rest();
      // One that began and broke at once has not shown that anything is well again.
      const auto since = std::exchange(served_since_, {});
      const bool served_well =
          std::exchange(has_settled_, false) || (since && Clock::now() - *since >= kSoundTenure);
      if (served_well) (void)outage_.works(Clock::now());
      failures = served_well ? 1 : failures + 1;
      pause(backoff(kReconnect, failures, static_cast<std::uint64_t>(getpid())));
    }
    give_back_lanes();
    shelf_.rest();
    note_place(Place::nowhere);
  }

  /// Also after a tenure that broke, whose connection is gone: nobody must wait until the lease has run out.
  void give_back_lanes() {
    if (!membership_ && was_member_) {
      auto again = store_->membership(options_.name, id_);
      if (again) membership_ = std::move(*again);
    }
    if (membership_) (void)membership_->leave();
    membership_.reset();
  }

  /// Connects, waits until the lanes are ours, delivers until that ends.
  Status one_round() {
    if (Status status = store_->check(); !status) return status;
    if (!membership_) {
      auto membership = store_->membership(options_.name, id_);
      if (!membership) return pass(membership);
      membership_ = std::move(*membership);
      was_member_ = true;
    }
    auto standing = wait_for_lanes();
    if (!standing || !standing->owns()) {
      if (!standing) membership_.reset();
      return standing ? Status{} : Status(pass(standing));
    }
    Status status = serve(standing->generation);
    // The next tenure has a generation of its own: what this one wrote and nobody heard of must not count late.
    if (!status) membership_.reset();
    return status;
  }

  Result<store::Membership::Standing> wait_for_lanes() {
    bool told = false;
    std::unique_ptr<store::Catalog> catalog;
    while (true) {
      auto standing = relay::renew(*membership_, options_.lease, trust_);
      if (!standing || standing->owns()) return standing;
      shelf_.rest();
      // What an earlier tenure of ours left in doubt is the owner's now.
      stop_report_ = {.drained = true, .abandoned = 0};
      if (!std::exchange(told, true))
        log::info("waiting for the lanes", {{"owner", standing->other}});
      compare_configuration(catalog);
      note_place(Place::waiting);
      const TimePoint renew = Clock::now() + options_.lease / 3;
      while (Clock::now() < renew) {
        if (pause(kVacancyCheck)) return store::Membership::Standing{};
        auto vacant = membership_->vacant();
        if (!vacant) return pass(vacant);
        if (*vacant) break;
      }
    }
  }

  /// While another relay has the lanes nothing is applied: it delivers by what stands in the store.
  void compare_configuration(std::unique_ptr<store::Catalog>& catalog) {
    if (configuration_.empty()) return;
    if (!catalog) {
      auto made = store_->catalog();
      if (!made) return;
      catalog = std::move(*made);
    }
    const auto rows = catalog->subscriptions();
    if (!rows) {
      catalog.reset();
      return;
    }
    configuration_.compare(*rows,
                           "another relay has the lanes; it is applied when this one gets them");
  }

  /// With the lanes in hand. After a mere reconnect nothing is applied, so that what a person changed meanwhile stays.
  Status configure(std::int64_t generation, store::Catalog& catalog, const std::string& outbox) {
    if (outbox != outbox_) {
      if (!outbox_.empty()) {
        log::warn("the store has another outbox than before: the relay starts anew with it");
        shelf_.forget();
        configured_under_.reset();
      }
      outbox_ = outbox;
    }
    // Each change of the owner raises the generation: the next one is ours, and nobody had the lanes in between.
    const bool reconnected = configured_under_ && *configured_under_ + 1 == generation;
    if (!reconnected) {
      configured_under_.reset();
      if (!trust_.holds(Clock::now())) {
        return fail(Error{.code = Errc::lease_lost,
                          .remedy = Remedy::retry_call,
                          .effect = Effect::none,
                          .message = "the lease is over before the configuration could be applied",
                          .hint = {},
                          .origin = {}});
      }
      if (Status status = configuration_.apply(catalog); !status) return status;
    }
    configured_under_ = generation;
    return {};
  }

  Status serve(std::int64_t generation) {
    auto catalog = store_->catalog();
    if (!catalog) return pass(catalog);
    auto outbox = (*catalog)->identity();
    if (!outbox) return pass(outbox);
    auto tenure = std::make_unique<relay::Tenure>(*store_, options_, configuration_, shelf_, trust_,
                                                  [this] { ring(); });
    // Until the tenure has ended: also while that waits for what is in flight.
    const relay::LeaseKeeper lease(*membership_, options_.lease, generation, trust_,
                                   [this] { ring(); });
    if (Status status = configure(generation, **catalog, *outbox); !status) return status;
    note_place(Place::delivering);
    if (Status status = tenure->begin(generation, std::move(*catalog), std::move(*outbox)); !status)
      return status;
    log::info("this relay has the lanes", {{"generation", generation}});
    publish(tenure.get(), generation);
    served_since_ = Clock::now();
    Status status = tend_until_it_ends(*tenure, lease);
    has_settled_ = tenure->has_settled();
    publish(nullptr, generation);
    // Asked to stop: everything in order. Otherwise the store or the lanes are lost: nothing more is written, and what
    // the sinks have in flight gets a moment to become known, so that it is not sent twice.
    const bool orderly = status.has_value();
    const StopReport report =
        orderly ? tenure->end(grace(), true) : tenure->end(kLostStoreGrace, false);
    stop_report_ = report;
    return status;
  }

  Status tend_until_it_ends(relay::Tenure& tenure, const relay::LeaseKeeper& lease) {
    std::unique_ptr<store::Maintenance> maintenance;
    TimePoint maintain_at = Clock::now();
    TimePoint tend_at = Clock::now() + kTendEvery;
    while (!stopping()) {
      if (auto failure = tenure.failure()) return fail(std::move(*failure));
      if (auto failure = lease.failure()) return fail(std::move(*failure));
      const TimePoint now = Clock::now();
      if (now >= tend_at || take_bell()) {
        if (Status status = tenure.tend(); !status) {
          // A row that somebody else has locked is no reason to stop delivering.
          if (status.error().remedy != Remedy::retry_call) return status;
          note_trouble(status.error());
        }
        tend_at = now + kTendEvery;
      }
      if (now >= maintain_at) {
        maintain(maintenance);
        maintain_at = now + kMaintainEvery;
      }
      wait_until(std::min(tend_at, maintain_at));
    }
    return {};
  }

  /// With a connection of its own, made again when something failed.
  void maintain(std::unique_ptr<store::Maintenance>& maintenance) {
    const auto run = [&]() -> Result<std::string> {
      if (!maintenance) {
        auto made = store_->maintenance();
        if (!made) return pass(made);
        maintenance = std::move(*made);
      }
      return maintenance->run();
    };
    auto done = run();
    if (!done) {
      maintenance.reset();
      const std::string reason = done.error().text();
      if (const auto repeats = maintenance_outage_.failed(reason, Clock::now())) {
        log::warn("maintenance failed, it is tried again",
                  {{"repeats", *repeats}, {"reason", reason}});
      }
      return;
    }
    if (const auto over = maintenance_outage_.works(Clock::now())) {
      log::info("maintenance works again", {{"down_seconds", in_seconds(over->lasted)}});
    }
    if (!done->empty()) log::info("maintenance", {{"done", *done}});
  }

  void note_trouble(const Error& error) {
    {
      const std::scoped_lock lock(mutex_);
      last_error_ = error.text();
    }
    // Each time: a tenure that begins before it fails has taken it back.
    if (error.remedy == Remedy::fix) tell_people(error);
    const std::string reason = error.text();
    const auto repeats = outage_.failed(reason, Clock::now());
    if (!repeats) return;
    if (error.remedy == Remedy::fix) {
      log::error("delivery is interrupted until somebody acts, and is tried again",
                 {{"repeats", *repeats}, {"reason", reason}});
    } else {
      log::warn("delivery is interrupted, and is tried again",
                {{"repeats", *repeats}, {"reason", reason}});
    }
  }

  /// For `outbox status`, where the store can be written to; the next tenure takes it back.
  void tell_people(const Error& error) {
    auto catalog = store_->catalog();
    if (!catalog) return;
    const auto rows = (*catalog)->subscriptions();
    if (!rows) return;
    for (const auto& row : *rows) {
      if (row.state == store::SubscriptionState::active)
        (void)(*catalog)->report_trouble(row.id, generation_, store::storable_text(error.text()));
    }
  }

  void publish(relay::Tenure* tenure, std::int64_t generation) {
    const std::scoped_lock lock(mutex_);
    tenure_ = tenure;
    generation_ = generation;
    if (tenure != nullptr) last_error_.clear();
  }

  void note_place(Place place) {
    {
      const std::scoped_lock lock(mutex_);
      place_ = place;
    }
    bell_.notify_all();
  }

  // ---- the bell

  void ring() {
    {
      const std::scoped_lock lock(mutex_);
      rung_ = true;
    }
    bell_.notify_all();
  }
  bool take_bell() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(rung_, false);
  }
  bool stopping() const {
    const std::scoped_lock lock(mutex_);
    return stop_asked_;
  }
  std::chrono::milliseconds grace() const {
    const std::scoped_lock lock(mutex_);
    return grace_;
  }
  bool is_in_place() const {
    const std::scoped_lock lock(mutex_);
    return place_ == Place::delivering || place_ == Place::waiting;
  }
  std::string last_error() const {
    const std::scoped_lock lock(mutex_);
    return last_error_;
  }
  void wait_until(TimePoint until) {
    std::unique_lock lock(mutex_);
    bell_.wait_until(lock, until, [this] { return stop_asked_ || rung_; });
  }
  /// True: asked to stop.
  bool pause(std::chrono::nanoseconds length) {
    std::unique_lock lock(mutex_);
    bell_.wait_for(lock, length, [this] { return stop_asked_; });
    return stop_asked_;
  }

  RelayOptions options_;
  const EventId id_{EventId::generate()};
  std::unique_ptr<store::Store> store_;
  relay::Configuration configuration_{options_.subscriptions};
  relay::SinkShelf shelf_;
  relay::TrustDeadline trust_;
  std::unique_ptr<store::Membership> membership_;
  bool was_member_{false};
  StopReport stop_report_{.drained = true, .abandoned = 0};
  std::optional<TimePoint> served_since_;
  bool has_settled_{false};
  Outage outage_;  ///< Of the store, or of the hold on the lanes.
  Outage maintenance_outage_;
  std::string outbox_;  ///< The identity of the one in the store; empty before it was seen.
  std::optional<std::int64_t>
      configured_under_;  ///< The newest generation of ours since the configuration was applied.

  std::mutex control_;  ///< start() and stop(), one after the other.
  mutable std::mutex mutex_;
  std::condition_variable bell_;
  bool stop_asked_{false};
  bool rung_{false};
  Place place_{Place::unknown};
  std::chrono::milliseconds grace_{kDefaultGrace};
  relay::Tenure* tenure_{nullptr};
  std::int64_t generation_{0};
  std::string last_error_;

  std::jthread keeper_;
  std::optional<std::stop_callback<std::function<void()>>> on_token_;
};

Result<std::unique_ptr<Relay>> Relay::create(RelayOptions options) {
  if (Status status = check_options(options); !status) return fail(std::move(status.error()));
  return std::unique_ptr<Relay>(new Relay(std::make_unique<Impl>(std::move(options))));
}

Relay::Relay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Relay::~Relay() = default;
Status Relay::use(std::string_view subscription, std::unique_ptr<Sink> sink) {
  return impl_->use(subscription, std::move(sink));
}
Status Relay::start(std::stop_token token) { return impl_->start(std::move(token)); }
void Relay::request_stop() noexcept { impl_->request_stop(); }
StopReport Relay::stop(std::chrono::milliseconds grace) { return impl_->stop(grace); }
Status Relay::run_once(std::chrono::milliseconds limit) { return impl_->run_once(limit); }
RelayReport Relay::report() const { return impl_->report(); }

}  // namespace outbox
