#include "demo/demo.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/signals.hpp"
#include "demo/courier.hpp"
#include "demo/order.hpp"
#include "demo/screen.hpp"
#include "demo/shop.hpp"
#include "demo/writers.hpp"
#include "store/store.hpp"
#include "store/url.hpp"
#include "support/destination.hpp"
#include "support/failure.hpp"
#include "support/judge.hpp"
#include "support/temp_dir.hpp"

namespace outbox::demo {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kSubscription = "demo";
constexpr milliseconds kLook{100};
/// How long a kill that is due waits for the courier to deliver something since its start.
constexpr seconds kKillPatience{3};
/// After closing time the demo waits for the rest, at most this long in all and this long without a
/// new delivery. After the shorter time it asks the outbox whether something is pending.
constexpr seconds kCatchUpLimit{300};
constexpr seconds kNothingNewLimit{45};
constexpr seconds kNothingNewPause{3};
constexpr seconds kFinishLimit{20};
/// The status is not used: no signal ends this process.
constexpr int kDemoStatus = 4;

void print(std::FILE* out, const std::string& text) {
  (void)std::fputs(text.c_str(), out);
  (void)std::fflush(out);
}

/// On SQLite only one process at a time works off a queue.
int workers_at(const std::string& url) {
  return store::store_kind(url) == store::StoreKind::sqlite ? 1 : 2;
}

/// The text for make_destination().
std::string find_place(const DemoOptions& options, const test::TempDir& folder) {
  if (options.sink == "file") return "file:" + folder.file("delivered.jsonl");
  if (options.sink == "kafka") return "kafka:" + folder.name() + "@" + options.brokers;
  // A destination of this kind is read while the shop is open, and once more at the end.
  const std::string kind = options.sink == "rabbitmq" ? "rabbitmq-stream" : options.sink;
  return kind + ":" + folder.name() + "@" + options.url;
}

/// Reads parcels as the messages of a destination. A parcel may be seen late, behind greater
/// numbers, so that each read goes back a little.
class Parcels {
 public:
  explicit Parcels(Shop& shop) : shop_(shop) {}

  void read(const test::Destination::Each& each) {
    constexpr std::int64_t kInFlight = 1000;
    for (const Parcel& parcel : shop_.parcels(newest_ - kInFlight)) {
      if (!seen_.insert(parcel.number).second) continue;
      each(to_event(parcel.order).payload);
      newest_ = std::max(newest_, parcel.number);
    }
  }

 private:
  Shop& shop_;
  std::int64_t newest_{0};
  std::unordered_set<std::int64_t> seen_;
};

class Demo {
 public:
  explicit Demo(const DemoOptions& options)
      : options_(options),
        url_(options.store.empty() ? "sqlite:" + folder_.file("shop.db") : options.store),
        where_(find_place(options, folder_)),
        progress_(options.json ? stderr : stdout, options.json) {
    signals_.end_at(0);  // The demo always cleans up.
  }
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;
  ~Demo() { progress_.finish(); }

  Ending run() {
    open();
    sell();
    return close_and_count();
  }

 private:
  // ---- opening

  void open() {
    // If opening fails, everything that was made is removed, because nothing is kept yet.
    shop_->open();
    if (!options_.tasks) destination_->open();
    if (options_.keep) keep();
    make_couriers();
    if (!options_.json) print(stdout, introduction(options_, shop_->place(), place()));
    for (const auto& courier : couriers_) courier->start();
    const Tells tells = options_.tasks ? Tells::workers : Tells::relay;
    writers_ = std::make_unique<Writers>(*shop_, options_.naive ? Tells::nobody : tells,
                                         *couriers_.front(), random_());
    opened_at_ = Clock::now();
    plan_kill();
    writers_->start(options_.writers);
  }

  void make_couriers() {
    if (options_.naive) {
      return add_courier({.name = "publisher",
                          .command = {"outbox-demo", "--publisher", where_},
                          .log = folder_.file("publisher.log"),
                          .takes_orders = true});
    }
    if (options_.tasks) {
      const std::string file = write("store", absolute_url(url_) + "\n");
      for (int i = 1; i <= workers_at(url_); ++i) {
        add_courier({.name = "worker",
                     .command = {"outbox-demo", "--worker", file},
                     .log = folder_.file("worker-" + std::to_string(i) + ".log")});
      }
      return;
    }
    const SubscriptionSpec spec = destination_->subscription(kSubscription);
    const std::string file = write("relay", relay_file(absolute_url(url_), shop_->schema(), spec));
    add_courier({.name = "relay",
                 .command = {"outbox-demo", "--relay", file},
                 .log = folder_.file("relay.log")});
  }

  void add_courier(Courier::Plan plan) {
    couriers_.push_back(std::make_unique<Courier>(std::move(plan)));
  }

  /// Writes a file in the work folder: a password in a store's address must not be an argument.
  [[nodiscard]] std::string write(const char* name, const std::string& text) const {
    std::string file = folder_.file(name);
    std::ofstream out(file);
    out << text;
    if (!out.flush()) test::give_up(Errc::unavailable, "cannot write " + file);
    return file;
  }

  /// The place where messages arrive.
  [[nodiscard]] std::string place() const {
    return options_.tasks ? "what its workers wrote" : destination_->place();
  }

  /// Reads what has arrived since its last call.
  using Read = std::function<void(const test::Destination::Each& each)>;

  /// A reader that begins at the beginning.
  [[nodiscard]] Read reader() {
    if (options_.tasks)
      return
          [parcels = std::make_shared<Parcels>(*shop_)](const auto& each) { parcels->read(each); };
    return [again = std::shared_ptr(test::make_destination(where_))](const auto& each) {
      again->read(each, milliseconds(0));
    };
  }

  // ---- while the shop is open

  void sell() {
    while (!signals_.wait_for(kLook)) {
      const auto now = elapsed();
      // This ends, because no kill is put off longer than kKillPatience.
      if (now >= seconds(options_.seconds) && kills_ == options_.kills) break;
      look(false);
      writers_->check();
      kill_if_due(now);
    }
    writers_->stop();
    writers_->check();
  }

  /// Chooses a random time in each of `kills` equal parts of the whole.
  void plan_kill() {
    std::uniform_real_distribution<double> somewhere(0.3, 0.9);
    const double part = 1000.0 * options_.seconds / std::max(options_.kills, 1);
    kill_due_ = milliseconds(std::lround(part * (kills_ + somewhere(random_))));
  }

  /// Kills only a courier that delivers, because nothing else proves anything.
  void kill_if_due(milliseconds now) {
    if (kills_ == options_.kills) return;
    if (now < (delivered_since_start_ > 0 ? kill_due_ : kill_due_ + kKillPatience)) return;
    Courier& victim = *couriers_[static_cast<std::size_t>(kills_) % couriers_.size()];
    victim.kill();
    ++kills_;
    delivered_since_start_ = 0;
    plan_kill();
    victim.start();
  }

  /// Reads what has arrived, and shows the progress.
  void look(bool closing) {
    const auto see = [this](std::string_view message) {
      ++delivered_since_start_;
      if (std::string id = delivered(message).id; !id.empty()) seen_.insert(std::move(id));
    };
    arrived_(see);
    progress_.show({.elapsed = elapsed(),
                    .committed = writers_->committed(),
                    .rolled_back = writers_->rolled_back(),
                    .delivered = static_cast<std::int64_t>(seen_.size()),
                    .kills = kills_,
                    .kills_planned = options_.kills,
                    .closing = closing});
    for (const auto& courier : couriers_) courier->check();
  }

  [[nodiscard]] milliseconds elapsed() const {
    return std::chrono::duration_cast<milliseconds>(Clock::now() - opened_at_);
  }

  // ---- after closing time

  Ending close_and_count() {
    std::vector<test::Attempt> orders;
    for (const Order& order : shop_->orders()) orders.push_back(committed(order));
    test::Judge judge(orders);
    const auto read_on = [&judge, read = reader()] {
      read([&judge](std::string_view message) { judge.saw(delivered(message)); });
    };
    if (!options_.naive) wait_for_the_rest(judge, read_on);
    std::exception_ptr not_finished;
    try {
      for (const auto& courier : couriers_) courier->finish(kFinishLimit);
    } catch (const Exception&) {
      not_finished = std::current_exception();  // It is rethrown after the count.
    }
    read_on();
    progress_.finish();
    const Ending ending = report(judge.verdict());
    if (not_finished) std::rethrow_exception(not_finished);
    return ending;
  }

  template <class ReadOn>
  void wait_for_the_rest(const test::Judge& judge, const ReadOn& read_on) {
    const auto until = Clock::now() + kCatchUpLimit;
    auto last_news = Clock::now();
    std::uint64_t arrived = 0;
    const int signals = signals_.count();
    do {
      read_on();
      look(true);
      if (judge.complete() && (!options_.tasks || shop_->stale_statements() == 0)) return;
      const auto now = Clock::now();
      if (std::exchange(arrived, judge.verdict().delivered) != arrived) last_news = now;
      if (now > until || now > last_news + kNothingNewLimit) return;
      if (now > last_news + kNothingNewPause && !options_.tasks && nothing_pending())
        return read_on();
    } while (!signals_.wait_for(kLook, signals));
  }

  /// Whether the outbox says that nothing is pending, so that nothing else will arrive.
  [[nodiscard]] bool nothing_pending() const {
    using test::must;
    try {
      const auto store = must(store::open_store(
          {.url = url_, .schema = shop_->schema(), .application = "outbox-demo"}));
      const auto catalog = must(store->catalog());
      const auto rows = must(catalog->subscriptions());
      return !rows.empty() && must(catalog->progress(rows.front(), 1)).pending == 0;
    } catch (const Exception&) {
      return false;  // The demo soon asks again.
    }
  }

  Ending report(const test::Verdict& verdict) {
    const Outcome outcome{.verdict = verdict,
                          .rolled_back = writers_->rolled_back(),
                          .stale = options_.tasks ? shop_->stale_statements() : 0,
                          .kills = kills_,
                          .destination = place(),
                          .naive = options_.naive,
                          .tasks = options_.tasks,
                          .interrupted = signals_.asked()};
    if (outcome.broken()) keep();  // The folder has the evidence.
    print(stdout, options_.json ? json(outcome) + "\n" : table(options_, outcome));
    if (folder_.kept()) {
      print(options_.json ? stderr : stdout, "Kept: " + folder_.path().string() +
                                                 "\n  shop       " + shop_->place() +
                                                 "\n  delivered  " + place() + "\n");
    }
    if (outcome.broken()) return Ending::broken;
    return outcome.interrupted ? Ending::interrupted : Ending::held;
  }

  void keep() {
    folder_.keep();
    // The program outbox looks at what is kept with this: outbox status -c relay.toml
    if (!options_.naive && !options_.tasks) {
      (void)write("relay.toml", relay_configuration(url_, shop_->schema(),
                                                    destination_->subscription(kSubscription)));
    }
    shop_->keep();
    destination_->keep();
  }

  const DemoOptions& options_;
  Signals signals_{kDemoStatus};
  test::TempDir folder_{"outbox-demo"};
  const std::string url_;
  const std::string where_;  ///< The destination, as make_destination() takes it.
  std::mt19937_64 random_{std::random_device{}()};
  ProgressLine progress_;

  // Each member uses earlier ones, so it is destroyed before them.
  const std::unique_ptr<Shop> shop_{make_shop(url_)};
  const std::unique_ptr<test::Destination> destination_{test::make_destination(where_)};
  const Read arrived_{options_.tasks ? reader() : [this](const auto& each) {
    destination_->read(each, milliseconds(0));
  }};
  std::vector<std::unique_ptr<Courier>> couriers_;
  std::unique_ptr<Writers> writers_;

  Clock::time_point opened_at_{Clock::now()};
  int kills_{0};
  milliseconds kill_due_{0};
  std::int64_t delivered_since_start_{0};
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::unique_ptr<Shop> make_shop(const std::string& url) {
#ifdef OUTBOX_WITH_SQLITE
  if (store::store_kind(url) == store::StoreKind::sqlite) return make_sqlite_shop(url);
#endif
#ifdef OUTBOX_WITH_POSTGRES
  if (store::store_kind(url) == store::StoreKind::postgres) return make_postgres_shop(url);
#endif
  return nullptr;  // check_options() refuses it.
}

Result<Ending> run_demo(const DemoOptions& options) {
  OUTBOX_TRY(check_options(options));
  return test::caught([&] { return Demo(options).run(); });
}

}  // namespace outbox::demo
