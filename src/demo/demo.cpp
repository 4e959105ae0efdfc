#include "demo/demo.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "demo/check.hpp"
#include "demo/courier.hpp"
#include "demo/destination.hpp"
#include "demo/interrupt.hpp"
#include "demo/screen.hpp"
#include "demo/shop.hpp"
#include "demo/work_folder.hpp"
#include "demo/writers.hpp"
#include "store/store.hpp"

namespace outbox::demo {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLook{100};
/// A kill that is due waits this long for the courier to have delivered something since it was started.
constexpr seconds kKillPatience{3};
/// After closing time the shop waits for the rest: so long in all, and so long without anything new. When nothing is new for
/// the shorter time the relay is believed if it says that it is done.
constexpr seconds kCatchUpLimit{300};
constexpr seconds kNothingNewLimit{45};
constexpr seconds kNothingNewForNow{3};
constexpr seconds kFinishLimit{20};

/// When to kill: once in each of so many equal parts of the time, somewhere in it.
std::vector<milliseconds> kill_times(int kills, seconds open, std::mt19937_64& random) {
  std::vector<milliseconds> times;
  if (kills == 0) return times;
  const double part = static_cast<double>(milliseconds(open).count()) / kills;
  std::uniform_real_distribution<double> somewhere(0.3, 0.9);
  for (int i = 0; i < kills; ++i)
    times.emplace_back(static_cast<milliseconds::rep>(part * (i + somewhere(random))));
  return times;
}

class Demo {
 public:
  Demo(const DemoOptions& options, WorkFolder folder)
      : options_(options),
        folder_(std::move(folder)),
        random_(std::random_device{}()),
        kill_times_(kill_times(options.kills, seconds(options.seconds), random_)),
        progress_(options.json ? stderr : stdout, options.json) {}
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;
  Demo(Demo&&) = delete;
  Demo& operator=(Demo&&) = delete;
  ~Demo() { close_down(); }

  Result<Ending> run() {
    if (Status status = open(); !status) return pass(status);
    if (Status status = sell(); !status) return pass(status);
    return close_and_count();
  }

 private:
  // ---- opening

  Status open() {
    make_shop();
    make_destination();
    // What went wrong on opening leaves nothing of ours behind; what was there before stays.
    if (Status status = shop_->open(); !status) return status;
    if (Status status = destination_->open(); !status) return status;
    if (options_.keep) folder_.keep();
    make_courier();
    auto reading = destination_->read();
    if (!reading) return pass(reading);
    live_ = std::move(*reading);
    if (!options_.json) {
      const std::string text =
          introduction(options_, {.shop = shop_->place(), .destination = destination_->place()});
      (void)std::fputs(text.c_str(), stdout);
      (void)std::fflush(stdout);
    }
    if (Status status = courier_->start(); !status) return status;
    writers_ =
        std::make_unique<Writers>(*shop_, options_.naive ? courier_.get() : nullptr, random_());
    opened_at_ = Clock::now();
    return writers_->start(options_.writers);
  }

  void make_shop() {
    const std::string url =
        options_.store.empty() ? "sqlite:" + (folder_.path() / "shop.db").string() : options_.store;
#ifdef OUTBOX_WITH_SQLITE
    if (url.rfind("sqlite:", 0) == 0) shop_ = make_sqlite_shop(url);
#endif
#ifdef OUTBOX_WITH_POSTGRES
    if (!shop_) shop_ = make_postgres_shop(url);
#endif
  }

  void make_destination() {
#ifdef OUTBOX_WITH_KAFKA
    if (options_.sink == "kafka") {
      destination_ = make_kafka_destination(options_.brokers, folder_.name());
      publisher_destination_ = "kafka:" + folder_.name() + "@" + options_.brokers;
      return;
    }
#endif
    const std::string path = (folder_.path() / "delivered.jsonl").string();
    destination_ = make_file_destination(path);
    publisher_destination_ = "file:" + path;
  }

  void make_courier() {
    if (options_.naive) {
      courier_ = make_publisher({.program = options_.program,
                                 .folder = folder_.path(),
                                 .destination = publisher_destination_});
      return;
    }
    courier_ = make_relay({.program = options_.program,
                           .folder = folder_.path(),
                           .store_url = shop_->url(),
                           .schema = shop_->schema(),
                           .subscription = destination_->subscription()});
  }

  // ---- while the shop is open

  Status sell() {
    while (interrupt_.wait(kLook) == 0) {
      const auto now = elapsed();
      // This ends: each kill comes kKillPatience after its time at the latest.
      if (now >= seconds(options_.seconds) && kills_ == options_.kills) break;
      if (Status status = look(false); !status) return status;
      if (auto failure = writers_->failure()) return fail(std::move(*failure));
      if (Status status = kill_if_due(now); !status) return status;
    }
    writers_->stop();
    if (auto failure = writers_->failure()) return fail(std::move(*failure));
    return {};
  }

  /// A kill counts only if there is something to disturb.
  Status kill_if_due(milliseconds now) {
    if (kills_ == options_.kills || now < kill_times_[static_cast<std::size_t>(kills_)]) return {};
    const bool delivers = delivered_since_start_ > 0;
    if (!delivers && now < kill_times_[static_cast<std::size_t>(kills_)] + kKillPatience) return {};
    courier_->kill();
    ++kills_;
    delivered_since_start_ = 0;
    return courier_->start();
  }

  /// Reads what has arrived, and shows how things stand.
  Status look(bool closing) {
    Status read = live_->next([this](const std::optional<Order>& order) {
      ++delivered_since_start_;
      if (order) seen_.insert(order->reference);
    });
    if (!read) return read;
    progress_.show({.elapsed = elapsed(),
                    .committed = writers_->committed(),
                    .rolled_back = writers_->rolled_back(),
                    .delivered = static_cast<std::int64_t>(seen_.size()),
                    .kills = kills_,
                    .kills_planned = options_.kills,
                    .closing = closing});
    return courier_->check();
  }

  [[nodiscard]] milliseconds elapsed() const {
    return std::chrono::duration_cast<milliseconds>(Clock::now() - opened_at_);
  }

  // ---- after closing time

  Result<Ending> close_and_count() {
    auto books = shop_->books();
    if (!books) return pass(books);
    auto reading = destination_->read();
    if (!reading) return pass(reading);
    Checker checker(std::move(*books));
    const auto read_on = [&] {
      return (*reading)->next([&checker](const auto& order) { checker.saw(order); });
    };
    if (!options_.naive) {
      if (Status status = wait_for_the_rest(checker, read_on); !status) return pass(status);
    }
    const Status finished = courier_->finish(kFinishLimit);
    if (Status status = read_on(); !status) return pass(status);
    progress_.finish();
    const Ending ending = report(checker.verdict());
    if (!finished) return fail(finished.error());
    return ending;
  }

  template <class ReadOn>
  Status wait_for_the_rest(const Checker& checker, const ReadOn& read_on) {
    const auto until = Clock::now() + kCatchUpLimit;
    auto last_news = Clock::now();
    std::int64_t arrived = -1;
    const int interrupts = interrupt_.count();
    while (true) {
      if (Status status = read_on(); !status) return status;
      if (Status status = look(true); !status) return status;
      if (checker.complete()) return {};
      const auto now = Clock::now();
      if (std::exchange(arrived, checker.verdict().delivered) != arrived) last_news = now;
      if (now > until || now > last_news + kNothingNewLimit) return {};
      if (now > last_news + kNothingNewForNow && nothing_pending()) return read_on();
      if (interrupt_.wait(kLook) > interrupts) return {};
    }
  }

  /// What the outbox itself says: then what has not arrived will not.
  [[nodiscard]] bool nothing_pending() const {
    auto store = store::open_store(
        {.url = shop_->url(), .schema = shop_->schema(), .application = "outbox demo"});
    if (!store) return false;
    auto catalog = (*store)->catalog();
    if (!catalog) return false;
    const auto rows = (*catalog)->subscriptions();
    if (!rows || rows->empty()) return false;
    const auto progress = (*catalog)->progress(rows->front(), 1);
    return progress && progress->pending == 0;
  }

  Ending report(const Verdict& verdict) {
    const Outcome outcome{.verdict = verdict,
                          .rolled_back = writers_->rolled_back(),
                          .kills = kills_,
                          .destination = destination_->place(),
                          .naive = options_.naive,
                          .interrupted = interrupt_.count() > 0};
    if (outcome.broken()) folder_.keep();  // the evidence
    const std::string text = options_.json ? json(outcome) + "\n" : table(options_, outcome);
    (void)std::fputs(text.c_str(), stdout);
    if (folder_.kept())
      (void)std::fprintf(options_.json ? stderr : stdout,
                         "Kept: %s\n  shop       %s\n  delivered  %s\n", folder_.path().c_str(),
                         shop_->place().c_str(), destination_->place().c_str());
    (void)std::fflush(stdout);
    if (outcome.broken()) return Ending::broken;
    return outcome.interrupted ? Ending::interrupted : Ending::held;
  }

  void close_down() {
    progress_.finish();
    if (writers_) writers_->stop();
    courier_.reset();
    live_.reset();
    if (folder_.kept()) return;
    if (destination_) (void)destination_->clear();
    if (shop_) (void)shop_->clear();
  }

  const DemoOptions& options_;
  const Interrupt interrupt_;
  WorkFolder folder_;
  std::mt19937_64 random_;
  const std::vector<milliseconds> kill_times_;
  ProgressLine progress_;

  std::unique_ptr<Shop> shop_;
  std::unique_ptr<Destination> destination_;
  std::string publisher_destination_;
  std::unique_ptr<Courier> courier_;
  std::unique_ptr<Writers> writers_;
  std::unique_ptr<Reading> live_;

  Clock::time_point opened_at_{Clock::now()};
  int kills_{0};
  std::int64_t delivered_since_start_{0};
  std::unordered_set<std::string> seen_;
};

}  // namespace

Result<Ending> run_demo(const DemoOptions& options) {
  if (Status status = check_options(options); !status) return pass(status);
  auto folder = WorkFolder::make();
  if (!folder) return pass(folder);
  return Demo(options, std::move(*folder)).run();
}

}  // namespace outbox::demo
