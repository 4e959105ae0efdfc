#include "support/servers.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "support/child_process.hpp"

namespace outbox::test {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

namespace {

void run_servers_script(const std::string& verb, const std::string& server) {
  ChildProcess script({.command = {OUTBOX_SERVERS_SCRIPT, verb,
                                   environment("OUTBOX_TEST_SERVERS").value_or(""), server},
                       .environment = {},
                       .output = "/dev/null",
                       .user = {},
                       .on_our_death = 0});
  if (script.wait(std::chrono::seconds(120)) != 0)
    throw std::runtime_error("scripts/servers " + verb + " " + server + " failed");
}

}  // namespace

void kill_server(const std::string& server) { run_servers_script("kill", server); }
void start_server(const std::string& server) { run_servers_script("up", server); }

int soak_factor() {
  const auto text = environment("OUTBOX_TEST_SOAK");
  return text ? std::max(1, std::atoi(text->c_str())) : 1;
}

}  // namespace outbox::test
