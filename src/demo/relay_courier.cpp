#include <fmt/format.h>

#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "demo/child.hpp"
#include "demo/courier.hpp"
#include "store/url.hpp"

namespace outbox::demo {
namespace {

/// A TOML basic string. "${" would be a reference; "$${" stands for it.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20U || byte == 0x7fU) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      if (c == '$' && text.compare(i, 2, "${") == 0) out += '$';
      out += c;
    }
  }
  return out + '"';
}

std::string last_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "it said nothing" : last;
}

class RelayCourier final : public Courier {
 public:
  explicit RelayCourier(RelayPlan plan) : plan_(std::move(plan)) {}

  Status start() override {
    const std::filesystem::path file = plan_.folder / "relay.toml";
    if (!std::filesystem::exists(file)) {
      std::ofstream out(file);
      out << relay_configuration(plan_);
      if (!out.flush()) return fail(Errc::unavailable, "cannot write " + file.string());
    }
    auto child = Child::start({.program = plan_.program,
                               .arguments = {"outbox", "relay", "-c", file.string()},
                               .log = log(),
                               .input = -1});
    if (!child) return pass(child);
    child_ = std::move(*child);
    return {};
  }

  Status check() override {
    if (!child_ || child_->running()) return {};
    return fail(Errc::internal,
                "the relay ended by itself with " + child_->ended_with() + ": " + last_line(log()));
  }

  void kill() override {
    if (child_) child_->kill();
  }

  Status finish(std::chrono::milliseconds limit) override {
    if (Status status = check(); !status) return status;
    if (!child_ || child_->stop(limit)) return {};
    return fail(Errc::deadline_exceeded, "the relay did not end in time after SIGTERM");
  }

  bool publish(const Order& /*order*/) override { return false; }

 private:
  [[nodiscard]] std::filesystem::path log() const { return plan_.folder / "relay.log"; }

  const RelayPlan plan_;
  std::optional<Child> child_;
};

}  // namespace

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

std::unique_ptr<Courier> make_relay(RelayPlan plan) {
  return std::make_unique<RelayCourier>(std::move(plan));
}

}  // namespace outbox::demo
