// Tests that asynq itself runs the tasks of the sink: a worker in Go (worker/main.go), with the
// version of asynq in worker/go.mod.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "event/base64.hpp"
#include "integration/asynq/asynq_fixture.hpp"

namespace outbox::test {
namespace {

using Json = nlohmann::json;

class AsynqWorker : public AsynqSinkTest {
 protected:
  void SetUp() override {
    AsynqSinkTest::SetUp();
    if (IsSkipped()) return;
    program_ = environment("OUTBOX_TEST_ASYNQ_WORKER");
    if (!program_)
      GTEST_SKIP()
          << "needs a worker in Go: OUTBOX_TEST_ASYNQ_WORKER is not set (scripts/test builds one where Go is)";
  }

  /// What a worker printed after so many tasks: the tasks that ran by id, the tasks that are kept,
  /// and the queues.
  struct Report {
    std::map<std::string, Json> ran;
    std::map<std::string, Json> kept;
    std::vector<std::string> queues;
  };
  [[nodiscard]] Report run_tasks(std::size_t count, const std::string& queue = "default") {
    const TempDir folder;
    ChildProcess worker(ChildProcess::Options{
        .command = {"asynq-worker", "-redis", "127.0.0.1:" + std::to_string(server().port()),
                    "-queue", queue, "-count", std::to_string(count)},
        .program = *program_,
        .output = folder.file("out")});
    Report report;
    EXPECT_EQ(worker.wait(), 0);
    std::ifstream lines(folder.file("out"));
    for (std::string text; std::getline(lines, text);) {
      const Json line = Json::parse(text, nullptr, false);
      if (line.is_discarded()) {
        ADD_FAILURE() << text;
      } else if (line.contains("queues")) {
        report.queues = line["queues"].get<std::vector<std::string>>();
      } else if (line.contains("kept")) {
        report.kept[line["kept"]] = line;
      } else {
        EXPECT_TRUE(report.ran.emplace(line["id"], line).second) << "twice: " << text;
      }
    }
    return report;
  }

  std::optional<std::string> program_;
};

std::string in_base64(const std::string& bytes) {
  std::string text(event::base64_length(bytes.size()), '\0');
  event::write_base64(bytes, text.data());
  return text;
}

TEST_F(AsynqWorker, runs_each_event_once_with_all_that_it_has) {
  open({{"type", "orders:{event_type|kebab}"}, {"max_retry", "7"}, {"timeout", "90s"}});
  Load load;
  load.add_many(200, 20);
  load.add("schlüssel", std::string("\0\xff\r\n", 4));
  load.add(std::nullopt, std::string(200'000, 'x'));
  load.item(3).headers.push_back({.name = "kunde", .value = "Jürgen \"Groß\" 日本 🙂\r\n"});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  const Report report = run_tasks(load.size());
  ASSERT_EQ(report.ran.size(), load.size());
  for (std::size_t i = 0; i < load.size(); ++i) {
    const std::string& id = load.item(i).id_text;
    ASSERT_TRUE(report.ran.contains(id));
    const Json& task = report.ran.at(id);
    EXPECT_EQ(task["type"], "orders:order-placed");
    EXPECT_EQ(task["queue"], "default");
    EXPECT_EQ(task["payload"], in_base64(load.item(i).body)) << i;
    EXPECT_EQ(task["max_retry"], 7);
    EXPECT_EQ(task["headers"]["outbox-id"], id);
    EXPECT_EQ(task["headers"].contains("outbox-key"), load.item(i).key.has_value());
    ASSERT_TRUE(report.kept.contains(id));
    EXPECT_EQ(report.kept.at(id)["state"], "completed");
    EXPECT_EQ(report.kept.at(id)["timeout"], 90);
    EXPECT_EQ(report.kept.at(id)["retention"], 24 * 3600);
  }
  EXPECT_EQ(report.ran.at(load.item(3).id_text)["headers"]["kunde"],
            load.item(3).headers.back().value);
  EXPECT_EQ(report.ran.at(load.item(200).id_text)["headers"]["outbox-key"], "schlüssel");
  EXPECT_EQ(report.queues, std::vector<std::string>{"default"});
}

TEST_F(AsynqWorker, does_not_run_an_event_that_is_sent_again_after_it_has_run) {
  open();
  Load load;
  load.add_many(50, 50);
  {
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver());
  }
  ASSERT_EQ(run_tasks(load.size()).ran.size(), load.size());
  load.add_many(1, 1);
  open();
  MiniRelay again(*sink_, load);
  ASSERT_TRUE(again.deliver());
  EXPECT_EQ(again.acked(), load.size());
  const std::string last = load.item(50).id_text;
  EXPECT_EQ(pending(), std::vector<std::string>{last});
  const Report report = run_tasks(1);
  ASSERT_EQ(report.ran.size(), 1U);
  EXPECT_EQ(report.ran.begin()->first, last);
}

TEST_F(AsynqWorker, knows_a_queue_that_a_template_made) {
  open({{"queue", "{aggregate_type|kebab}"}});
  Load load;
  load.add_many(10, 10);
  for (std::size_t i = 0; i < load.size(); ++i) load.item(i).event.aggregate_type = "PurchaseOrder";
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  const Report report = run_tasks(load.size(), "purchase-order");
  EXPECT_EQ(report.ran.size(), load.size());
  EXPECT_EQ(report.queues, std::vector<std::string>{"purchase-order"});
}

}  // namespace
}  // namespace outbox::test
