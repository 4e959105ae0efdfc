// Enqueues an event in the database of the argument, delivers it itself, and prints what arrived.
#include <sqlite3.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <outbox/relay.hpp>
#include <outbox/sqlite.hpp>
#include <outbox/testing.hpp>
#include <string>

namespace {

outbox::Status enqueue(const std::string& path) {
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK)
    return outbox::unexpected(outbox::Error{.message = "no database"});
  try {
    outbox::sqlite::Transaction tx(db);
    tx.enqueue({.aggregate_type = "order",
                .aggregate_id = "1",
                .event_type = "OrderPlaced",
                .payload = "{}"});
    tx.commit();
  } catch (const outbox::Exception& caught) {
    return outbox::unexpected(caught.error());
  }
  sqlite3_close(db);
  return {};
}

outbox::Status deliver(const std::string& path) {
  outbox::RelayOptions options{.store_url = "sqlite:" + path};
  options.subscriptions = {{.name = "test", .sink = "custom"}};
  auto relay = outbox::Relay::create(options);
  if (!relay) return outbox::unexpected(relay.error());
  auto sink = std::make_unique<outbox::testing::RecordingSink>();
  const auto recording = sink->recording();
  if (auto used = (*relay)->use("test", std::move(sink)); !used) return used;
  const auto done = (*relay)->run_once(std::chrono::seconds(30));
  if (!done) return outbox::unexpected(done.error());
  if (!done->settled) std::printf("%s\n", done->reason.c_str());
  for (const auto& event : recording->events())
    std::printf("%s %s\n", event.event_type.c_str(), event.body.c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (auto* step : {&enqueue, &deliver}) {
    if (const outbox::Status status = step(argv[1]); !status) {
      std::fprintf(stderr, "%s\n", status.error().text().c_str());
      return 1;
    }
  }
  return 0;
}
