// A worker does the shop's tasks as any application does, with the header outbox/worker.hpp.
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/signals.hpp"
#include "demo/demo.hpp"
#include "demo/order.hpp"
#include "demo/shop.hpp"
#include "support/failure.hpp"

namespace outbox::demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kThreads = 16;
/// The time of a layer; a wrapped order has 12 of them.
constexpr milliseconds kLayer{100};
constexpr std::size_t kLayers = 12;
constexpr seconds kGrace{15};
/// The status is not used: no signal ends this process.
constexpr int kWorkerStatus = 4;

/// The packer of this thread.
Packer& make_packer(Shop& shop) {
  thread_local const std::unique_ptr<Packer> packer = shop.packer();
  return *packer;
}

TaskEnd wrap(Shop& shop, std::string_view payload, const TaskRun& run) {
  for (std::size_t layer = 1; layer <= kLayers; ++layer) {
    if (run.stop.stop_requested()) return TaskEnd::failed("was told to stop");
    std::this_thread::sleep_for(kLayer);
    run.progress(100 * layer / kLayers, "layer " + std::to_string(layer));
  }
  make_packer(shop).work(run, parse_order(payload), false);
  return TaskEnd::done();
}

void work_off(const std::string& url) {
  const auto shop = make_shop(url);
  Signals signals{kWorkerStatus};
  signals.end_at(0);  // Tasks that run come to their end.
  const auto work = [&](std::string_view payload, const TaskRun& run) {
    const Order order = parse_order(payload);
    make_packer(*shop).work(run, order, run.attempt == 1 && run.type == kPack && is_fragile(order));
  };
  Handlers handlers;
  handlers.on(kPack, work).on(kStatement, work);
  handlers.on(kWrap, [&](std::string_view payload, const TaskRun& run) {
    return wrap(*shop, payload, run);
  });
  // The lease is short, so that a killed worker's tasks go on while people watch.
  const auto worker = test::must(Worker::create(
      {.relay = {.store_url = url, .schema = shop->schema(), .lease = seconds(3)},
       .queues = {kQueue},
       .threads = kThreads,
       .delays = {std::chrono::milliseconds(100), std::chrono::milliseconds(200),
                  std::chrono::milliseconds(500), std::chrono::seconds(1), std::chrono::seconds(1),
                  std::chrono::seconds(2), std::chrono::seconds(2), std::chrono::seconds(5),
                  std::chrono::seconds(5)},
       .heartbeat = seconds(1)},
      std::move(handlers)));
  test::must(worker->start());
  signals.wait();
  (void)worker->stop(kGrace);
}

}  // namespace

Status run_worker(const std::string& file) {
  std::string url;
  std::ifstream in(file);
  if (!std::getline(in, url)) return fail(Errc::unavailable, "cannot read " + file);
  return test::caught([&] { work_off(url); });
}

}  // namespace outbox::demo
