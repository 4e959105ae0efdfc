#include "conformance/store/fixture.hpp"

#include "event/key.hpp"

namespace outbox::conformance {

Event make_event(const std::string& key, const std::string& payload) {
  return Event{.aggregate_type = "order",
               .aggregate_id = key,
               .event_type = "OrderPlaced",
               .payload = payload};
}

std::vector<Event> make_events(std::size_t count, const std::string& prefix) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < count; ++i) events.push_back(make_event(prefix + std::to_string(i)));
  return events;
}

std::string json_string(std::size_t bytes) {
  std::string text(bytes, 'x');
  text.front() = '"';
  text.back() = '"';
  return text;
}

SubscriptionSpec make_spec(const std::string& name) {
  SubscriptionSpec spec;
  spec.name = name;
  spec.sink = "null";
  return spec;
}

void EmptyStoreTest::SetUp() {
  if (const std::string reason = GetParam().missing(); !reason.empty()) GTEST_SKIP() << reason;
  database_ = GetParam().create(begin_);
  ASSERT_NE(database_, nullptr);
  store_ = open();
}

std::unique_ptr<store::Store> EmptyStoreTest::open() const {
  auto store = store::open_store({.url = database_->url()});
  EXPECT_TRUE(ok(store));
  return store ? std::move(*store) : nullptr;
}

void StoreTest::SetUp() {
  begin_ = Begin::migrated;
  EmptyStoreTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(ok(store_->migrate()));
  ASSERT_TRUE(ok(store_->check()));
}

std::vector<EventId> StoreTest::write(const std::vector<Event>& events) {
  auto writer = store_->writer();
  EXPECT_TRUE(ok(writer));
  if (!writer) return {};
  auto ids = (*writer)->write(events);
  EXPECT_TRUE(ok(ids));
  return ids ? std::move(*ids) : std::vector<EventId>{};
}

store::SubscriptionRow StoreTest::subscribe(const SubscriptionSpec& spec) {
  auto catalog = store_->catalog();
  EXPECT_TRUE(ok(catalog));
  if (!catalog) return {};
  EXPECT_TRUE(ok((*catalog)->apply(spec)));
  return read_row(spec.name);
}

store::SubscriptionRow StoreTest::read_row(const std::string& name) {
  auto catalog = store_->catalog();
  EXPECT_TRUE(ok(catalog));
  if (!catalog) return {};
  auto rows = (*catalog)->subscriptions();
  EXPECT_TRUE(ok(rows));
  if (!rows) return {};
  for (auto& row : *rows) {
    if (row.spec.name == name) return row;
  }
  ADD_FAILURE() << "no subscription " << name;
  return {};
}

store::Strand StoreTest::load(std::int32_t subscription) {
  auto progress = store_->progress();
  EXPECT_TRUE(ok(progress));
  if (!progress) return {};
  auto strands = (*progress)->load(subscription, store::kAllLanes);
  EXPECT_TRUE(ok(strands));
  if (!strands) return {};
  EXPECT_EQ(strands->size(), 1U);
  EXPECT_EQ(strands->front().lanes, store::kAllLanes);
  return strands->front();
}

LogDrive::LogDrive(store::Store& store, store::Cursor cursor, std::size_t rows, std::size_t bytes)
    : cursor_(std::move(cursor)), rows_(rows), bytes_(bytes) {
  auto reader = store.reader();
  EXPECT_TRUE(ok(reader));
  if (!reader) return;
  reader_ = std::move(*reader);
  EXPECT_TRUE(ok(reader_->begin(std::span(&cursor_, 1))));
}

store::Page LogDrive::next() {
  EXPECT_TRUE(ok(reader_->start(
      {.cursor = cursor_, .rows = rows_, .bytes = bytes_, .ahead = false, .until = {}})));
  auto page = reader_->finish();
  EXPECT_TRUE(ok(page));
  if (!page)
    return {
        .pair = {}, .drained = true, .caught_up = true, .events = {}, .storage = {}, .kinds = {}};
  EXPECT_TRUE(ok(reader_->wait_durable()));
  cursor_ = after(*page);
  return std::move(*page);
}

std::vector<EventView> LogDrive::rest() {
  std::vector<EventView> events;
  while (true) {
    pages_.push_back(next());
    const store::Page& page = pages_.back();
    events.insert(events.end(), page.events.begin(), page.events.end());
    if (page.events.empty() && (page.drained || page.caught_up)) return events;
  }
}

store::Settlement make_settlement(const store::SubscriptionRow& subscription,
                                  const store::Page& page, std::int64_t generation) {
  store::Settlement row;
  row.subscription = subscription.id;
  row.generation = generation;
  row.config_version = subscription.config_version;
  row.s1 = page.pair->s1;
  row.s2 = page.pair->s2;
  row.from_position = page.from;
  if (!page.drained) row.position = page.position;
  row.bound = page.pair->bound;
  for (const EventView& event : page.events) row.acked.add(event::id_hash(event.id));
  return row;
}

store::Cursor after(const store::Page& page) {
  if (page.drained) return {.s1 = page.pair->s2, .s2 = {}, .position = 0, .bound = 0};
  return {.s1 = page.pair->s1,
          .s2 = page.pair->s2,
          .position = page.position,
          .bound = page.pair->bound};
}

std::vector<std::string> list_keys(const std::vector<EventView>& events) {
  std::vector<std::string> keys;
  for (const EventView& event : events) keys.emplace_back(event.aggregate_id);
  return keys;
}

std::vector<EventId> list_ids(const std::vector<EventView>& events) {
  std::vector<EventId> ids;
  for (const EventView& event : events) ids.push_back(event.id);
  return ids;
}

}  // namespace outbox::conformance
