// A consumer and a worker in a process of their own, for tests to kill and stop. The effect of a
// message is a row of the table effect (number, key) in the database of both, and an event "Effect"
// with the same key and payload. The payload "fail" makes the handler throw, and "crash" ends the
// process. support/fault_points.hpp says what OUTBOX_FAULT_POINT and OUTBOX_FAULT_FILE do.
//
//   outbox_test_consumer STORE NAME SOURCE READ GROUP [SETTING=VALUE ...]
#include <libpq-fe.h>

#include <csignal>
#include <iostream>
#include <memory>
#include <outbox/consumer.hpp>
#include <outbox/postgres.hpp>
#include <outbox/worker.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/log.hpp"

namespace {

using outbox::TaskRun;
using outbox::postgres::Transaction;

/// The payload is the number.
void write_effect(Transaction& tx, const std::string_view& payload, const TaskRun& run) {
  const std::string number(payload);
  if (number == "fail") throw std::runtime_error("poison");
  if (number == "crash") {
    (void)std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would end the process otherwise
    (void)std::raise(SIGSEGV);
  }
  const std::string key(run.key);
  const char* const values[] = {number.c_str(), key.c_str()};
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQexecParams(tx.connection(), "INSERT INTO effect (number, key) VALUES ($1, $2)", 2, nullptr,
                   values, nullptr, nullptr, 0),
      PQclear);
  outbox::postgres::check(tx.connection(), result.get(), "insert the effect");
  (void)tx.enqueue({.aggregate_type = "effect",
                    .aggregate_id = key,
                    .event_type = "Effect",
                    .payload = number,
                    .content_type = "text/plain"});
}

template <class T>
T must(outbox::Result<T> result) {
  if (result) return std::move(*result);
  std::cerr << result.error().text() << std::endl;
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  outbox::log::configure("info", outbox::log::Format::text);

  outbox::ConsumerOptions options{.store_url = argv[1],
                                  .consumer = {.name = argv[2],
                                               .source = argv[3],
                                               .read = {argv[4]},
                                               .group = argv[5],
                                               .queue = "effects",
                                               .type = "text:effect",
                                               .batch = 50}};
  for (int i = 6; i < argc; ++i) {
    const std::string_view setting(argv[i]);
    const auto equals = setting.find('=');
    options.consumer.settings.emplace(setting.substr(0, equals), setting.substr(equals + 1));
  }
  outbox::Handlers handlers;
  handlers.on_tx("effect", {.deadline = std::chrono::seconds(5)}, write_effect);
  const auto worker = must(
      outbox::Worker::create({.relay = {.store_url = argv[1], .lease = std::chrono::seconds(2)},
                              .queues = {"effects"},
                              .delays = {std::chrono::milliseconds(100), std::chrono::seconds(1),
                                         std::chrono::seconds(1), std::chrono::seconds(1)},
                              .heartbeat = std::chrono::milliseconds(300)},
                             std::move(handlers)));
  const auto consumer = must(outbox::Consumer::create(std::move(options)));
  if (!worker->start() || !consumer->start()) return 1;
  int signal = 0;
  sigwait(&ends, &signal);
  consumer->stop();
  return worker->stop(std::chrono::seconds(10)).drained ? 0 : 4;
}
