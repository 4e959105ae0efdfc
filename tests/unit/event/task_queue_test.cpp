#include "event/task_queue.hpp"

#include <gtest/gtest.h>

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
