#include "support/own_postgres.hpp"

#include <libpq-fe.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

constexpr const char* kUser = "postgres";

std::string program(const std::string& name) {
  return environment("OUTBOX_TEST_PGBIN").value_or("/usr/bin") + "/" + name;
}

}  // namespace

OwnPostgres::OwnPostgres(const std::vector<std::string>& settings,
                         std::map<std::string, std::string> environment)
    : environment_(std::move(environment)), port_(free_port()) {
  run("initdb", {"--username=" + std::string(kUser), "--auth=trust", "--encoding=UTF8",
                 "--locale=C", "--no-sync"});
  std::vector<std::string> all{"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''",
                               "max_connections = 200", "max_prepared_transactions = 10",
                               "shared_buffers = 64MB"};
  all.insert(all.end(), settings.begin(), settings.end());
  configure(all);
  start();
}

OwnPostgres::OwnPostgres(Copy /*copy*/, int primary_port) : port_(free_port()) {
  run("pg_basebackup", {"--host=127.0.0.1", "--port=" + std::to_string(primary_port),
                        "--username=" + std::string(kUser), "--write-recovery-conf",
                        "--checkpoint=fast", "--no-sync"});
  configure({});
  start();
}

std::unique_ptr<OwnPostgres> OwnPostgres::start_standby(int port) {
  return std::unique_ptr<OwnPostgres>(new OwnPostgres(Copy{}, port));
}

/// Runs a program that makes the data folder.
void OwnPostgres::run(const std::string& name, const std::vector<std::string>& arguments) const {
  std::filesystem::permissions(folder_.path(),
                               std::filesystem::perms::all);  // the server runs as another user
  std::vector<std::string> command{program(name), "--pgdata=" + folder_.file("data")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  ChildProcess process(
      {.command = std::move(command), .output = folder_.file("made.log"), .user = kUser});
  if (process.wait() != 0) throw std::runtime_error(name + " failed in " + folder_.path().string());
}

void OwnPostgres::configure(const std::vector<std::string>& settings) const {
  std::ofstream conf(folder_.file("data/postgresql.conf"), std::ios::app);
  for (const std::string& line : settings) conf << line << '\n';
  conf << "port = " << port_ << '\n';
}

void OwnPostgres::start() {
  std::map<std::string, std::string> environment = environment_;
  environment["LC_ALL"] = "C";
  server_ = std::make_unique<ChildProcess>(
      ChildProcess::Options{.command = {program("postgres"), "-D", folder_.file("data")},
                            .environment = std::move(environment),
                            .output = folder_.file("log"),
                            .user = kUser,
                            .on_our_death = SIGQUIT});
  const bool answers = eventually([this] {
    if (!server_->running()) throw std::runtime_error("the server ended at once:\n" + log());
    return PQping(url().c_str()) == PQPING_OK;
  });
  if (!answers) throw std::runtime_error("the server does not answer:\n" + log());
}

void OwnPostgres::stop_immediate() {
  server_->signal(SIGQUIT);
  if (!server_->wait()) throw std::runtime_error("the server does not stop:\n" + log());
}

void OwnPostgres::stop() {
  server_->signal(SIGINT);
  if (!server_->wait()) throw std::runtime_error("the server does not stop:\n" + log());
}

std::string OwnPostgres::url() const {
  return "postgresql://" + std::string(kUser) + "@127.0.0.1:" + std::to_string(port_) + "/postgres";
}

std::string OwnPostgres::log() const {
  std::ifstream file(folder_.file("log"));
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  return all.size() <= 2000 ? all : all.substr(all.size() - 2000);
}

}  // namespace outbox::test
