#include "integration/redis/own_redis.hpp"

#include <csignal>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/eventually.hpp"
#include "support/free_port.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

std::string program() {
  std::istringstream folders(environment("PATH").value_or("/usr/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (std::filesystem::exists(folder + "/redis-server")) return folder + "/redis-server";
  }
  throw std::runtime_error("no redis-server on this machine");
}

}  // namespace

OwnRedis::OwnRedis(std::vector<std::string> arguments)
    : arguments_(std::move(arguments)), port_(free_port()) {
  start();
}

std::unique_ptr<OwnRedis> OwnRedis::start_replica(int port) {
  auto replica = std::make_unique<OwnRedis>(
      Words{"--replicaof", "127.0.0.1", std::to_string(port), "--repl-diskless-sync-delay", "0"});
  const auto has_data = [port] {
    RedisClient master(port);
    (void)master.run({"SET", "check", ""});
    (void)master.run({"DEL", "check"});
    return master.number({"WAIT", "1", "50"}) == 1;
  };
  if (!eventually(has_data)) throw std::runtime_error("the replica gets no data");
  return replica;
}

void OwnRedis::start() {
  Words command{"redis-server",
                "--bind",
                "127.0.0.1",
                "--port",
                std::to_string(port_),
                "--dir",
                folder_.path(),
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--save",
                "",
                "--repl-diskless-sync-delay",
                "0"};
  command.insert(command.end(), arguments_.begin(), arguments_.end());
  process_ = std::make_unique<ChildProcess>(ChildProcess::Options{
      .command = std::move(command), .program = program(), .output = folder_.file("log")});
  if (!eventually([this] { return RedisClient::answers(port_); }))
    throw std::runtime_error("redis-server does not answer");
}

void OwnRedis::freeze() const { process_->signal(SIGSTOP); }
void OwnRedis::thaw() const { process_->signal(SIGCONT); }

std::string OwnRedis::url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

}  // namespace outbox::test
