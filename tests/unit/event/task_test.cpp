#include <gtest/gtest.h>

#include <outbox/task.hpp>
#include <string>

namespace outbox {
namespace {

Task report() {
  return {.queue = "reports", .type = "report.make", .payload = R"({"month": 10})", .key = "acme"};
}

std::string complaint(const Task& task) {
  const Status status = validate(task);
  return status ? "" : status.error().message;
}

TEST(Task, is_an_event_of_its_queue) {
  const Event event = to_event(report());
  EXPECT_EQ(event.aggregate_type, "outbox-task:reports");
  EXPECT_EQ(event.aggregate_id, "acme");
  EXPECT_EQ(event.event_type, "report.make");
  EXPECT_EQ(event.payload, R"({"month": 10})");
  EXPECT_EQ(event.content_type, "application/json");
  EXPECT_TRUE(validate(event));
}

TEST(Task, an_error_names_the_field_of_the_task) {
  EXPECT_EQ(complaint(report()), "");
  Task task = report();
  task.queue = "";
  EXPECT_EQ(complaint(task), "queue: is empty");
  EXPECT_THROW((void)to_event(task), Exception);
  task.queue = "re ports";
  EXPECT_EQ(complaint(task), "queue: 're ports' is no name of a queue");
  task = report();
  task.type = " ";
  EXPECT_EQ(complaint(task), "type: is blank");
  task = report();
  task.key = std::string(256, 'k');
  EXPECT_EQ(complaint(task).substr(0, 5), "key: ");
  task = report();
  task.payload = "{";
  EXPECT_EQ(complaint(task).substr(0, 20), "payload: is not JSON");
}

}  // namespace
}  // namespace outbox
