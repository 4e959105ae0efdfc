// [task."TYPE"]: what does tasks of a type, and the settings of handlers that are sinks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configuration.hpp"

namespace outbox::config {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

#define OUTBOX_NEEDS_SINK(name)                                                      \
  if (::outbox::sink::find_kind(name) == nullptr) {                                  \
    GTEST_SKIP() << "needs a build with the sink " name ": OUTBOX_WITH_HTTP, _SMTP"; \
  }                                                                                  \
  static_assert(true)

const std::string kHttp =
    "[task.\"report.make\"]\nhandler = \"http\"\n[task.\"report.make\".http]\nurl = \"https://h/{json:month}\"\n";
const std::string kMail =
    "[task.mail]\nhandler = \"smtp\"\nqueue = \"mails\"\n[task.mail.smtp]\nurl = \"smtp://h\"\nfrom = \"a@b.example\"\n"
    "to = [\"{json:to}\"]\n";

TEST(Tasks, a_command_makes_it_exec) {
  Configuration file("[task.x]\ncommand = [\"ls\"]\n");
  const auto tasks = file.loaded().config.tasks;
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].handler, "exec");
}

TEST(Tasks, a_handler_that_is_a_sink_has_its_settings) {
  OUTBOX_NEEDS_SINK("http");
  Configuration file(
      "[task.\"report.make\"]\nhandler = \"http\"\nformat = \"json\"\nheaders = { x = \"{seq}\" }\n"
      "http.url = \"https://h/{json:month}\"\n");
  const auto tasks = file.loaded().config.tasks;
  ASSERT_EQ(tasks.size(), 1U);
  const SubscriptionSpec& delivery = tasks[0].delivery;
  EXPECT_EQ(delivery.sink, "http");
  EXPECT_EQ(delivery.format, "json");
  EXPECT_THAT(delivery.headers, ElementsAre(Pair("x", "{seq}")));
  EXPECT_THAT(delivery.sink_settings,
              ElementsAre(Pair("batch", "1"), Pair("concurrency", "1"),
                          Pair("idempotency_key", "true"), Pair("url", "https://h/{json:month}")));
  EXPECT_EQ(file.shown("task.\"report.make\".http", "url"),
            "\"https://h/{json:month}\" outbox.toml:5");
  EXPECT_EQ(file.shown("task.\"report.make\".http", "idempotency_key"), "true default");
  EXPECT_EQ(file.shown("task.\"report.make\".http", "batch"), "(none)");
  EXPECT_EQ(file.shown("task.\"report.make\"", "format"), "\"json\" outbox.toml:3");
  EXPECT_EQ(file.shown("task.\"report.make\"", "command"), "(none)");
}

TEST(Tasks, mails_too) {
  OUTBOX_NEEDS_SINK("smtp");
  Configuration file(kMail + "on_unknown = \"park\"\n");
  EXPECT_THAT(file.problems(), IsEmpty());
  EXPECT_THAT(file.loaded().config.tasks[0].delivery.sink_settings,
              Contains(Pair("max_in_flight", "1")));
}

TEST(Tasks, settings_of_another_handler_are_refused_with_both_names) {
  OUTBOX_NEEDS_SINK("http");
  EXPECT_THAT(
      Configuration("[task.x]\nhandler = \"http\"\ncommand = [\"ls\"]\nhttp.url = \"https://h/\"\n")
          .problems(),
      ElementsAre(
          "3 task.\"x\".command: belongs to handler exec, and the handler of this task is http "
          "(remove it, or write handler = \"exec\")"));
  EXPECT_THAT(
      Configuration("[task.x]\ncommand = [\"ls\"]\nhttp.url = \"https://h/\"\n").problems(),
      ElementsAre(
          "3 task.\"x\".http: belongs to handler http, and the handler of this task is exec "
          "(remove it, or write handler = \"http\")"));
  EXPECT_THAT(
      Configuration(
          "[task.x]\nhandler = \"http\"\nhttp.url = \"https://h/\"\nsmtp.url = \"smtp://h\"\n")
          .problems(),
      ElementsAre(HasSubstr("belongs to handler smtp, and the handler of this task is http")));
  EXPECT_THAT(Configuration("[task.x]\ncommand = [\"ls\"]\nformat = \"json\"\n").problems(),
              ElementsAre(HasSubstr("belongs to handler http and smtp")));
}

TEST(Tasks, wrong_settings_come_with_their_place) {
  OUTBOX_NEEDS_SINK("http");
  OUTBOX_NEEDS_SINK("smtp");
  const std::pair<std::string, std::string> cases[] = {
      {"[task.x]\nhandler = \"http\"\n", "1 task.\"x\".http.url: is missing"},
      {"[task.x]\nhandler = \"htp\"\n", "2 task.\"x\".handler: "},
      {"[task.x]\n", "1 task.\"x\".command: is missing"},
      {kHttp + "timeout = \"1s\"\n", "5 unknown setting task.\"report.make\".http.timeout"},
      {kHttp + "batch = 10\n",
       "5 task.\"report.make\".http.batch: cannot be set here (each task has a request"},
      {kHttp + "concurrency = 10\n",
       "5 task.\"report.make\".http.concurrency: cannot be set here (worker.threads"},
      {kHttp + "secrets = \"hush\"\n", "5 task.\"report.make\".http.secrets: "},
      {kHttp + "body = '{id}x'\n", "5 task.\"report.make\".http.body: "},
      {"[task.x]\nhandler = \"http\"\nhttp.url = \"http://h/\"\n", "3 task.\"x\".http.url: "},
      {"[task.x]\nhandler = \"http\"\nhttp.url = \"https://{json:host}/\"\n",
       "3 task.\"x\".http.url: "},
      {"[task.x]\nhandler = \"http\"\nformat = \"xml\"\nhttp.url = \"https://h/\"\n",
       "3 task.\"x\".format: "},
      {"[task.x]\nhandler = \"http\"\ntopic = \"y\"\nhttp.url = \"https://h/\"\n",
       "3 unknown setting task.\"x\".topic"},
      {"[task.x]\nhandler = \"http\"\nurl = \"https://h/\"\n",
       "3 task.\"x\".url: is a setting of the handler, not of the task (write it below "
       "[task.\"x\".http])"},
      {"[task.x]\nurl = \"https://h/\"\n", "2 task.\"x\".url: belongs to handler http and smtp"},
      {kHttp + "queue = \"y\"\n",
       "5 task.\"report.make\".http.queue: is a setting of the task, not of its sink (write it below "
       "[task.\"report.make\"])"},
      {kMail + "max_in_flight = 2\n", "8 task.\"mail\".smtp.max_in_flight: cannot be set here"},
      {kMail + "subject = \"{nope}\"\n", "8 task.\"mail\".smtp.subject: "},
  };
  for (const auto& [text, problem] : cases) {
    Configuration file(text);
    EXPECT_THAT(file.problems(), Contains(StartsWith(problem))) << text;
  }
}

TEST(Tasks, only_a_worker_needs_their_secrets) {
  OUTBOX_NEEDS_SINK("http");
  Configuration file(kHttp + "authorization = \"Bearer ${env:NOT_SET_ANYWHERE}\"\n");
  EXPECT_THAT(file.problems(), ElementsAre(HasSubstr("the environment variable is not set")));
  file.request().resolve_tasks = false;
  EXPECT_THAT(file.problems(), IsEmpty());
  EXPECT_EQ(file.shown("task.\"report.make\".http", "authorization"), "\"***\" outbox.toml:5");
}

}  // namespace
}  // namespace outbox::config
