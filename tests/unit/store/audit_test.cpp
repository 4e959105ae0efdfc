// What is recorded of a person's change, and in which transaction.
#include "store/sql/audit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"

namespace outbox::store::sql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Notes what it is asked to do.
class NotedConnection final : public Connection {
 public:
  Result<Rows> exec(Named statement, const Params& params) override {
    if (statement == &Statements::begin_decision) noted.emplace_back("prepare");
    if (statement == &Statements::record_decision)
      noted.push_back("record " + std::to_string(std::get<std::int64_t>(params.at(6))));
    if (statement == &Statements::record_more)
      noted.push_back("add " + std::to_string(std::get<std::int64_t>(params.at(1))));
    if (statement == refused) return fail(Errc::unavailable, "the disk is full");
    return Rows(1, {std::int64_t{7}});
  }
  Status run_and_write(Named /*statement*/, const Params& /*params*/,
                       std::span<const Event> /*events*/,
                       std::span<const EventId> /*ids*/) override {
    return {};
  }
  Status transact(const std::function<Result<Decision>()>& body) override {
    noted.emplace_back("begin");
    const auto ended = body();
    noted.emplace_back(ended && *ended == Decision::commit ? "commit" : "rollback");
    return ended ? Status{} : Status(tl::unexpected(ended.error()));
  }

  std::vector<std::string> noted;
  Named refused{nullptr};
};

class RecordedChange : public testing::Test {
 protected:
  void act() {
    connection_.decided_by(PersonDecision{.actor = "anna",
                                          .origin = "command line",
                                          .verb = "parked retry",
                                          .filter = "{}",
                                          .reason = {}});
  }
  Status change(std::int64_t count) {
    return change_recorded(connection_, {.name = "orders"}, [&]() -> Result<std::int64_t> {
      connection_.noted.emplace_back("change");
      return count;
    });
  }

  NotedConnection connection_;
};

TEST_F(RecordedChange, is_recorded_with_its_count_in_its_transaction) {
  act();
  EXPECT_TRUE(change(3));
  EXPECT_THAT(connection_.noted, ElementsAre("begin", "prepare", "change", "record 3", "commit"));
}

TEST_F(RecordedChange, leaves_nothing_if_nothing_changed) {
  act();
  EXPECT_TRUE(change(0));
  EXPECT_THAT(connection_.noted, ElementsAre("begin", "prepare", "change", "rollback"));
}

TEST_F(RecordedChange, does_not_happen_if_it_cannot_be_recorded) {
  act();
  connection_.refused = &Statements::record_decision;
  EXPECT_FALSE(change(3));
  EXPECT_THAT(connection_.noted, ElementsAre("begin", "prepare", "change", "record 3", "rollback"));
}

TEST_F(RecordedChange, is_not_recorded_if_it_fails) {
  act();
  const Status failed = change_recorded(connection_, {}, []() -> Result<std::int64_t> {
    return fail(Errc::not_found, "there is no such subscription");
  });
  EXPECT_FALSE(failed);
  EXPECT_THAT(connection_.noted, ElementsAre("begin", "prepare", "rollback"));
}

TEST_F(RecordedChange, of_no_person_runs_as_it_is) {
  EXPECT_TRUE(change(3));
  EXPECT_THAT(connection_.noted, ElementsAre("change"));
  connection_.noted.clear();
  EXPECT_TRUE(record(connection_, {}, 3));
  EXPECT_EQ(record_batch(connection_, 0, 3).value(), 0);
  EXPECT_THAT(connection_.noted, IsEmpty());
}

TEST_F(RecordedChange, in_many_batches_has_one_row) {
  act();
  const std::int64_t row = record_batch(connection_, 0, 500).value();
  EXPECT_EQ(row, 7);
  EXPECT_EQ(record_batch(connection_, row, 20).value(), row);
  EXPECT_THAT(connection_.noted, ElementsAre("record 500", "add 20"));
}

}  // namespace
}  // namespace outbox::store::sql
