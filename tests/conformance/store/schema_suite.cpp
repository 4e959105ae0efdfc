// Tests migrations, and the check of the schema at the start.
#include <future>
#include <set>

#include "conformance/store/fixture.hpp"

namespace outbox::conformance {

using SchemaSuite = EmptyStoreTest;
INSTANTIATE_TEST_SUITE_P(Store, SchemaSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(SchemaSuite, refuses_a_store_without_a_schema_and_says_how_to_make_one) {
  const Status status = store_->check();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::not_found) << status.error().text();
  EXPECT_THAT(status.error().hint, ::testing::HasSubstr("outbox migrate"));
}

TEST_P(SchemaSuite, migrates_once) {
  auto first = store_->migrate();
  ASSERT_TRUE(ok(first));
  EXPECT_FALSE(first->empty());
  auto second = store_->migrate();
  ASSERT_TRUE(ok(second));
  EXPECT_THAT(*second, ::testing::IsEmpty());
  auto state = store_->schema_state();
  ASSERT_TRUE(ok(state));
  EXPECT_EQ(state->version, state->wanted);
  EXPECT_GE(state->version, 1);
  EXPECT_TRUE(ok(store_->check()));
}

TEST_P(SchemaSuite, migrates_once_when_several_try_at_the_same_time) {
  std::vector<std::future<Result<std::vector<std::string>>>> tries;
  for (int i = 0; i < 4; ++i) {
    tries.push_back(std::async(std::launch::async, [store = open()] { return store->migrate(); }));
  }
  std::vector<std::string> names;
  for (auto& attempt : tries) {
    auto applied = attempt.get();
    ASSERT_TRUE(ok(applied));
    names.insert(names.end(), applied->begin(), applied->end());
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(store_->schema_state()->version));
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_TRUE(ok(store_->check()));
}

TEST_P(SchemaSuite, refuses_a_schema_of_the_future) {
  ASSERT_TRUE(ok(store_->migrate()));
  database_->make_schema_too_new();
  const Status check = store_->check();
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().code, Errc::unsupported) << check.error().text();
  EXPECT_THAT(check.error().text(), ::testing::HasSubstr("newer"));
  EXPECT_FALSE(store_->migrate());
  auto state = store_->schema_state();
  ASSERT_TRUE(ok(state));
  EXPECT_GT(state->version, state->wanted);
}

TEST_P(SchemaSuite, prints_its_migrations) {
  auto text = store::print_migrations({.url = database_->url()});
  ASSERT_TRUE(ok(text));
  EXPECT_THAT(*text, ::testing::AllOf(::testing::HasSubstr("CREATE TABLE"),
                                      ::testing::HasSubstr("new_event")));
}

}  // namespace outbox::conformance
