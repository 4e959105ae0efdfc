#include "demo/courier.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/reference.hpp"
#include "base/setting.hpp"
#include "store/url.hpp"
#include "support/failure.hpp"

namespace outbox::demo {
namespace {

using test::give_up;

std::string quoted(const std::string& text) { return quote(literal(text)); }

std::string last_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "its log is empty" : last;
}

}  // namespace

void Courier::start() {
  std::array<int, 2> ends{-1, -1};
  if (plan_.takes_orders && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    give_up(Errc::internal, std::string("cannot make a socket: ") + std::strerror(errno));
  hang_up();
  {
    const MutexLock lock(mutex_);
    socket_ = ends[0];
  }
  // Variables of the outbox in the environment would override the settings that the demo gives.
  child_.emplace(test::ChildProcess::Options{.command = plan_.command,
                                             .program = plan_.program,
                                             .without = "OUTBOX_",
                                             .output = plan_.log.string(),
                                             .input = ends[1]});
  if (ends[1] >= 0) (void)close(ends[1]);
}

void Courier::check() {
  if (!child_ || child_->running()) return;
  give_up(Errc::internal, "the " + plan_.name + " ended by itself with " + child_->ended_with() +
                              ": " + last_line(plan_.log));
}

void Courier::kill() {
  if (child_) child_->kill();
  hang_up();
}

void Courier::finish(std::chrono::milliseconds limit) {
  check();
  if (!child_) return;
  hang_up();
  if (!plan_.takes_orders) child_->signal(SIGTERM);
  if (child_->wait(limit)) return;
  child_->kill();
  give_up(Errc::deadline_exceeded, "the " + plan_.name + " did not end in time");
}

bool Courier::publish(const std::string& order) {
  const MutexLock lock(mutex_);
  return socket_ >= 0 && send(socket_, order.data(), order.size(), MSG_NOSIGNAL) >= 0;
}

void Courier::hang_up() {
  const MutexLock lock(mutex_);
  if (socket_ >= 0) (void)close(socket_);
  socket_ = -1;
}

std::string absolute_url(const std::string& store_url) {
  const std::string path = store::find_file(store_url);
  return path.empty() ? store_url : "sqlite:" + std::filesystem::absolute(path).string();
}

std::string relay_configuration(const std::string& store_url, const std::string& schema,
                                const SubscriptionSpec& spec) {
  // A relative path would count from the folder of the file.
  std::string text = fmt::format("[store]\nurl = {}\nschema = {}\n",
                                 quoted(absolute_url(store_url)), quoted(schema));
  text += fmt::format("\n[subscription.{}]\nsink = {}\nformat = {}\ntopic = {}\n", spec.name,
                      quoted(spec.sink), quoted(spec.format), quoted(spec.topic));
  text += fmt::format("\n[subscription.{}.{}]\n", spec.name, spec.sink);
  for (const auto& [name, value] : spec.sink_settings)
    text += fmt::format("{} = {}\n", quoted(name), quote(value));
  return text;
}

}  // namespace outbox::demo
