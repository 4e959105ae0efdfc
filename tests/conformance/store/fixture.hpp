// Every test of the suite begins with a migrated store on a fresh database.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "conformance/store/database.hpp"
#include "store/store.hpp"
#include "support/eventually.hpp"

namespace outbox::conformance {

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& info) {
  return info.param.name;
}

/// Fails the test with the error's text.
template <class T>
::testing::AssertionResult ok(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << to_string(result.error().code) << ": " << result.error().text();
}

using test::eventually;

[[nodiscard]] Event make_event(const std::string& key, const std::string& payload = R"({"n":1})");
[[nodiscard]] std::vector<Event> make_events(std::size_t count, const std::string& prefix = "k");
/// A JSON string of this many bytes.
[[nodiscard]] std::string json_string(std::size_t bytes);
[[nodiscard]] SubscriptionSpec make_spec(const std::string& name);

/// Begins with a database without a schema.
class EmptyStoreTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override;
  [[nodiscard]] std::unique_ptr<store::Store> open() const;

  Begin begin_ = Begin::empty;
  std::unique_ptr<Database> database_;
  std::unique_ptr<store::Store> store_;
};

/// Begins with a migrated database.
class StoreTest : public EmptyStoreTest {
 protected:
  void SetUp() override;

  std::vector<EventId> write(const std::vector<Event>& events);
  /// Applies the subscription and returns its row.
  store::SubscriptionRow subscribe(const SubscriptionSpec& spec);
  store::SubscriptionRow read_row(const std::string& name);
  /// The only strand of a subscription.
  store::Strand load(std::int32_t subscription);
};

/// Reads page after page as a relay does, with each pair durable before its events or end are used.
class LogDrive {
 public:
  LogDrive(store::Store& store, store::Cursor cursor, std::size_t rows = 1000,
           std::size_t bytes = std::size_t{8} << 20U);

  /// Reads one page and moves the cursor behind it.
  store::Page next();
  /// Reads everything that is there now. The pages are valid as long as the drive.
  std::vector<EventView> rest();
  [[nodiscard]] const store::Cursor& cursor() const { return cursor_; }
  [[nodiscard]] store::LogReader& reader() { return *reader_; }

 private:
  std::unique_ptr<store::LogReader> reader_;
  store::Cursor cursor_;
  const std::size_t rows_;
  const std::size_t bytes_;
  std::vector<store::Page> pages_;
};

/// The row that settles a page of `subscription`, all events acked.
[[nodiscard]] store::Settlement make_settlement(const store::SubscriptionRow& subscription,
                                                const store::Page& page, std::int64_t generation);
[[nodiscard]] store::Cursor after(const store::Page& page);

[[nodiscard]] std::vector<std::string> list_keys(const std::vector<EventView>& events);
[[nodiscard]] std::vector<EventId> list_ids(const std::vector<EventView>& events);

}  // namespace outbox::conformance
