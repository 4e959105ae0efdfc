#include "event/task_queue.hpp"

#include <gtest/gtest.h>

#include "subscription/spec.hpp"

namespace outbox::event {
namespace {

TEST(TaskQueue, the_subscriptions_of_a_queue_are_known_by_their_names) {
  EXPECT_EQ(queue_of_subscription("task.reports"), "reports");
  EXPECT_EQ(queue_of_subscription("task1.reports"), "reports");
  EXPECT_EQ(queue_of_subscription("task4.a.b"), "a.b");
  for (const char* other : {"reports", "task", "task.", "task1", "tasks.reports", "task12.reports",
                            "task.a b", "mytask.reports", ""})
    EXPECT_FALSE(queue_of_subscription(other)) << other;
}

TEST(TaskQueue, a_type_has_subscriptions_of_its_own_which_are_known_by_their_names) {
  SubscriptionSpec base;
  base.name = "task1.reports.eu";
  base.sink = "custom";
  base.aggregate_types = {"outbox-task:reports.eu!1"};
  EXPECT_TRUE(is_of_queue(base));
  EXPECT_FALSE(is_of_type(base));
  const SubscriptionSpec own = spec_of_type(base, "report.make/äöü");
  EXPECT_TRUE(is_of_queue(own));
  EXPECT_TRUE(is_of_type(own));
  EXPECT_TRUE(is_split_from(own, base));
  EXPECT_EQ(queue_of_subscription(own.name), "reports.eu");
  // The name is in the stores and must never change.
  EXPECT_EQ(own.name, "type1.reports.eu.877647");
  EXPECT_NE(own.name, spec_of_type(base, "report.mail").name);
  SubscriptionSpec other = base;
  other.name = "task.reports.eu";
  other.aggregate_types = {"outbox-task:reports.eu"};
  EXPECT_FALSE(is_split_from(own, other)) << "of another priority";
  for (const char* name : {"type.reports", "type.reports.12345", "types.reports.123456",
                           "type..123456", "type5x.reports.123456"})
    EXPECT_FALSE(queue_of_subscription(name)) << name;
}

TEST(TaskQueue, a_name_of_a_type_fits_a_subscription) {
  SubscriptionSpec base;
  base.sink = "custom";
  const std::string queue(50, 'q');
  base.aggregate_types = {make_aggregate_type(queue, 4)};
  base.name = subscription_of_queue(queue, 4);
  const SubscriptionSpec own = spec_of_type(base, std::string(255, 't'));
  EXPECT_TRUE(subscription::validate(own)) << own.name;
}

TEST(TaskQueue, a_task_names_its_queue_and_who_delivers_it) {
  EXPECT_EQ(queue_of_task("outbox-task:reports"), "reports");
  EXPECT_EQ(subscription_of_task("outbox-task:reports"), "task.reports");
  EXPECT_EQ(queue_of_task("outbox-task:reports!1"), "reports");
  EXPECT_EQ(subscription_of_task("outbox-task:reports!1"), "task1.reports");
}

TEST(TaskQueue, each_state_has_its_word) {
  using enum TaskState;
  for (const TaskState state :
       {pending, scheduled, running, retrying, waiting, completed, dead, cancelled})
    EXPECT_EQ(find_task_state(to_string(state)), state);
  EXPECT_FALSE(find_task_state("published"));
}

}  // namespace
}  // namespace outbox::event
