#include "demo/courier.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/url.hpp"
#include "testkit/failure.hpp"

namespace outbox::demo {
namespace {

/// A TOML basic string: a JSON string, except that DEL must be escaped. "${" starts a reference in our configuration and is
/// written "$${".
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : nlohmann::json(text).dump()) {
    if (c == '\x7f') {
      out += "\\u007F";
      continue;
    }
    if (c == '{' && out.ends_with('$'))
      out += "${";
    else
      out += c;
  }
  return out;
}

std::string last_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "its log is empty" : last;
}

class RelayCourier final : public Courier {
 public:
  explicit RelayCourier(const RelayPlan& plan)
      : Courier("relay", plan.program, plan.folder), file_(plan.folder / "relay.toml") {
    std::ofstream out(file_);
    out << relay_configuration(plan);
    if (!out.flush()) testkit::give_up(Errc::unavailable, "cannot write " + file_.string());
  }

  void start() override { run({"relay", "-c", file_.string()}); }

 private:
  const std::filesystem::path file_;
};

}  // namespace

Courier::Courier(std::string name, std::string program, const std::filesystem::path& folder)
    : name_(std::move(name)), program_(std::move(program)), log_(folder / (name_ + ".log")) {}

void Courier::run(std::vector<std::string> arguments, int input) {
  arguments.insert(arguments.begin(), "outbox");
  // Our settings in the environment would override those that we give it.
  child_.emplace(testkit::ChildProcess::Options{.command = std::move(arguments),
                                                .program = program_,
                                                .without = "OUTBOX_",
                                                .output = log_.string(),
                                                .input = input});
}

void Courier::check() {
  if (!child_ || child_->running()) return;
  testkit::give_up(Errc::internal, "the " + name_ + " ended by itself with " +
                                       child_->ended_with() + ": " + last_line(log_));
}

void Courier::kill() {
  if (child_) child_->kill();
}

void Courier::finish(std::chrono::milliseconds limit) {
  check();
  if (!child_) return;
  ask_to_stop();
  if (child_->wait(limit)) return;
  child_->kill();
  testkit::give_up(Errc::deadline_exceeded, "the " + name_ + " did not end in time");
}

std::string relay_configuration(const RelayPlan& plan) {
  // A relative path would count from the folder of the file.
  const std::string path = store::file_of(plan.store_url);
  const std::string url =
      path.empty() ? plan.store_url : "sqlite:" + std::filesystem::absolute(path).string();
  const SubscriptionSpec& spec = plan.subscription;
  std::string text =
      fmt::format("[store]\nurl = {}\nschema = {}\n", quoted(url), quoted(plan.schema));
  text += fmt::format("\n[subscription.{}]\nsink = {}\nformat = {}\ntopic = {}\n", spec.name,
                      quoted(spec.sink), quoted(spec.format), quoted(spec.topic));
  text += fmt::format("\n[subscription.{}.{}]\n", spec.name, spec.sink);
  for (const auto& [name, value] : spec.sink_settings)
    text += fmt::format("{} = {}\n", quoted(name), quoted(value));
  return text;
}

std::unique_ptr<Courier> make_relay(const RelayPlan& plan) {
  return std::make_unique<RelayCourier>(plan);
}

}  // namespace outbox::demo
