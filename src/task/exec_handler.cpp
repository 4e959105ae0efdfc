#include "task/exec_handler.hpp"

#include <string.h>  // NOLINT(modernize-deprecated-headers): sigabbrev_np()
#include <sys/wait.h>

#include <string>
#include <utility>

#include "base/error.hpp"

namespace outbox::task {
namespace {

/// The most bytes of what a program wrote that go into a task's reason.
constexpr std::size_t kLongestReason = 2000;

std::vector<std::string> make_environment(const TaskRun& run) {
  const auto entry = [](const char* name, std::string_view value) {
    return std::string("OUTBOX_TASK_").append(name).append("=").append(value);
  };
  return {entry("ID", run.id.str()),
          entry("TYPE", run.type),
          entry("QUEUE", run.queue),
          entry("KEY", run.key),
          entry("ATTEMPT", std::to_string(run.attempt)),
          entry("CONTENT_TYPE", run.content_type),
          entry("HEADERS", run.headers)};
}

std::string with_errors(std::string text, std::string_view errors) {
  while (!errors.empty() &&
         (errors.back() == '\n' || errors.back() == '\r' || errors.back() == ' '))
    errors.remove_suffix(1);
  if (errors.size() > kLongestReason) errors.remove_prefix(errors.size() - kLongestReason);
  if (!errors.empty()) text.append(": ").append(errors);
  return text;
}

std::string name_signal(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name != nullptr ? std::string("SIG").append(name) : "signal " + std::to_string(number);
}

}  // namespace

TaskEnd end_of_child(const ChildEnd& end) {
  if (WIFSIGNALED(end.status)) {
    const std::string by = "the program was ended by " + name_signal(WTERMSIG(end.status));
    return TaskEnd::failed(
        with_errors(end.told ? by + " when it was told to stop" : by, end.errors));
  }
  const int status = WEXITSTATUS(end.status);
  if (status == 0) return end.output.empty() ? TaskEnd::done() : TaskEnd::done(end.output);
  const std::string reason =
      with_errors("the program ended with status " + std::to_string(status), end.errors);
  return status == kExitBadData ? TaskEnd::dead(reason) : TaskEnd::failed(reason);
}

Handlers::Run exec_handler(ChildOptions options) {
  return [options = std::move(options)](std::string_view payload, const TaskRun& run) {
    ChildOptions of_run = options;
    of_run.environment = make_environment(run);
    auto end = run_child(of_run, payload, run.stop);
    if (!end) return TaskEnd::failed("the program could not be started: " + end.error().text());
    return end_of_child(*end);
  };
}

}  // namespace outbox::task
