#include "support/relay_process.hpp"

#include <fstream>
#include <string_view>

#include "support/servers.hpp"
#include "support/shop_options.hpp"

namespace outbox::test {
namespace {

/// The body in a line of the file sink. Any other line is a body itself.
std::string body_in(const std::string& line) {
  constexpr std::string_view before = ",\"body\":";
  constexpr std::string_view behind = ",\"id\":\"";
  if (line.rfind("{\"topic\":", 0) != 0) return line;
  const auto from = line.find(before) + before.size();
  return line.substr(from, line.find(behind, from) - from);
}

/// A text field of a writer's body.
std::string field(const std::string& body, const std::string& name) {
  const std::string start = "\"" + name + "\": \"";
  const auto at = body.find(start);
  if (at == std::string::npos) return {};
  const auto from = at + start.size();
  return body.substr(from, body.find('"', from) - from);
}

}  // namespace

std::unique_ptr<ChildProcess> start_relay(const RelayProcessOptions& options) {
  return std::make_unique<ChildProcess>(ChildProcess::Options{
      .command = {OUTBOX_TEST_RELAY, options.store_url, options.file,
                  std::to_string(options.lease.count()), std::to_string(options.page_rows)},
      .environment = options.environment,
      .output = options.log,
      .user = {}});
}

std::unique_ptr<ChildProcess> start_outbox_relay(const std::string& config, const std::string& log,
                                                 const std::vector<std::string>& arguments) {
  std::vector<std::string> command{outbox_program(), "relay", "-c", config};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return std::make_unique<ChildProcess>(ChildProcess::Options{
      .command = std::move(command), .environment = {}, .output = log, .user = {}});
}

std::string outbox_program() { return environment("OUTBOX_TEST_BINARY").value_or(OUTBOX_BINARY); }

std::vector<Delivery> deliveries_in(const std::string& file) {
  std::vector<Delivery> all;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.back() != '}') continue;
    line = body_in(line);
    if (id_in(line).empty()) continue;
    all.push_back({.id = id_in(line), .key = field(line, "key"), .body = line});
  }
  return all;
}

std::set<std::string> event_ids_in(const std::string& file) {
  constexpr std::string_view kAfterId = "\",\"seq\":";
  constexpr std::size_t kIdChars = 36;
  std::set<std::string> ids;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t end = line.rfind(kAfterId);
    if (end != std::string::npos && end > kIdChars && line.back() == '}')
      ids.insert(line.substr(end - kIdChars, kIdChars));
  }
  return ids;
}

std::size_t lines_in(const std::string& file) {
  std::size_t count = 0;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) count += line.empty() ? 0 : 1;
  return count;
}

}  // namespace outbox::test
