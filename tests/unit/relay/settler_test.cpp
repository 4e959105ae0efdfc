// Tests when a settlement waits for the disk, and what is counted.
#include "relay/settler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "base/error.hpp"

namespace outbox::test {
namespace {

using store::Durability;

/// Refuses the first writes, like a store whose write lock is held. Records the durability that
/// each write asks for.
class BusyAtFirst final : public store::Progress {
 public:
  BusyAtFirst(int refusals, std::vector<Durability>& asked) : refusals_(refusals), asked_(asked) {}
  [[nodiscard]] Result<std::vector<store::Strand>> load(std::int32_t /*subscription*/,
                                                        store::LaneMask /*lanes*/) override {
    return std::vector<store::Strand>{};
  }
  [[nodiscard]] Status claim(std::int32_t /*subscription*/, store::LaneMask /*lanes*/,
                             std::int64_t /*generation*/) override {
    return {};
  }
  [[nodiscard]] Status begin_beside(std::int32_t /*base*/, std::int32_t /*subscription*/,
                                    store::LaneMask /*lanes*/,
                                    std::int64_t /*generation*/) override {
    return {};
  }
  [[nodiscard]] Result<store::ParkedKeys> parked_keys(std::int32_t /*subscription*/,
                                                      store::LaneMask /*lanes*/,
                                                      bool /*dead_block*/) override {
    return store::ParkedKeys{};
  }
  [[nodiscard]] Result<store::DueEvents> due(std::int32_t /*subscription*/,
                                             const store::Holding& /*holding*/,
                                             const store::DueLimits& /*limits*/,
                                             std::span<const store::AskedRow> /*asked*/) override {
    return store::DueEvents{};
  }
  [[nodiscard]] Result<std::vector<store::ReleasedKey>> append(
      const store::ProgressBatch& /*batch*/, Durability durability) override {
    asked_.push_back(durability);
    if (refusals_-- <= 0) return std::vector<store::ReleasedKey>{};
    return fail(Error{.code = Errc::unavailable,
                      .remedy = Remedy::retry_call,
                      .effect = Effect::none,
                      .message = "busy",
                      .hint = {},
                      .origin = {}});
  }
  [[nodiscard]] std::uint64_t statements() const override { return asked_.size(); }

 private:
  int refusals_;
  std::vector<Durability>& asked_;
};

TEST(Settler, the_flush_that_is_due_is_not_done_before_a_write_succeeded) {
  std::vector<Durability> asked;
  relay::Totals totals;
  std::promise<void> written;
  {
    relay::Settler settler(std::make_unique<BusyAtFirst>(1, asked), totals, [](const Error&) {});
    settler.settle({.rows = {store::Settlement{}}},
                   [&](const auto& /*released*/) { written.set_value(); });
    settler.start();
    written.get_future().wait();
  }
  EXPECT_THAT(asked, ::testing::ElementsAre(Durability::flushed, Durability::flushed));
}

/// If a crash of the store lost the row, the task would begin a second time beside its run.
TEST(Settler, a_row_of_a_run_is_flushed) {
  std::vector<Durability> asked;
  relay::Totals totals;
  {
    relay::Settler settler(std::make_unique<BusyAtFirst>(0, asked), totals, [](const Error&) {});
    settler.start();
    for (const auto state : {store::ParkedState::waiting, store::ParkedState::running}) {
      std::promise<void> written;
      store::ParkedEvent parked;
      parked.state = state;
      settler.settle({.rows = {store::Settlement{}}, .parked = {parked}},
                     [&](const auto& /*released*/) { written.set_value(); });
      written.get_future().wait();
    }
  }
  EXPECT_EQ(asked.back(), Durability::flushed);
}

TEST(Settler, what_was_written_is_counted_once) {
  std::vector<Durability> asked;
  relay::Totals totals;
  std::promise<void> written;
  {
    relay::Settler settler(std::make_unique<BusyAtFirst>(2, asked), totals, [](const Error&) {});
    store::Settlement row;
    row.acked.count = 5;
    row.filtered.count = 3;
    row.parked.count = 2;
    store::ParkedEvent dead;
    dead.state = store::ParkedState::dead;
    store::RetryResult delivered;
    store::RetryResult failed;
    failed.state = store::ParkedState::retrying;
    store::RetryResult given_up;
    given_up.state = store::ParkedState::dead;
    store::ReplayProgress replay;
    replay.sent = 7;
    settler.settle({.rows = {row, row},
                    .parked = {dead, store::ParkedEvent{}},
                    .results = {delivered, failed, given_up},
                    .replays = {replay}},
                   [&](const auto& /*released*/) { written.set_value(); });
    settler.start();
    written.get_future().wait();
  }
  EXPECT_EQ(asked.size(), 3U);
  const auto now = totals.settled();
  EXPECT_EQ(now.delivered, 2 * 5U + 1 + 7);
  EXPECT_EQ(now.filtered, 6U);
  EXPECT_EQ(now.parked, 4U);
  EXPECT_EQ(now.dead, 2U);
}

}  // namespace
}  // namespace outbox::test
