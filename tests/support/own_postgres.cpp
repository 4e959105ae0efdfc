#include "support/own_postgres.hpp"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "support/servers.hpp"
#include "support/testkit.hpp"

namespace outbox::test {
namespace {

constexpr const char* kUser = "postgres";

std::string program(const std::string& name) {
  return environment("OUTBOX_TEST_PGBIN").value_or("/usr/bin") + "/" + name;
}

}  // namespace

/// Below the range from which the kernel assigns ports, so that a server that is restarted finds its port still free.
int free_port() {
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto port = static_cast<std::uint16_t>(20000 + random() % 10000);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const bool bound = bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(listener);
    if (bound) return port;
  }
  throw std::runtime_error("no free port on the loopback interface");
}

OwnPostgres::OwnPostgres(const std::vector<std::string>& settings) : port_(free_port()) {
  std::filesystem::permissions(folder_.path(),
                               std::filesystem::perms::all);  // the server runs as another user
  ChildProcess initdb({.command = {program("initdb"), "--pgdata=" + folder_.file("data"),
                                   "--username=" + std::string(kUser), "--auth=trust",
                                   "--encoding=UTF8", "--locale=C", "--no-sync"},
                       .output = folder_.file("initdb.log"),
                       .user = kUser});
  if (initdb.wait() != 0) throw std::runtime_error("initdb failed in " + folder_.path().string());
  std::ofstream conf(folder_.file("data/postgresql.conf"), std::ios::app);
  conf << "listen_addresses = '127.0.0.1'\nport = " << port_ << "\nunix_socket_directories = ''\n"
       << "max_connections = 200\nmax_prepared_transactions = 10\nshared_buffers = 64MB\n";
  for (const std::string& line : settings) conf << line << '\n';
  conf.close();
  start();
}

void OwnPostgres::start() {
  server_ = std::make_unique<ChildProcess>(
      ChildProcess::Options{.command = {program("postgres"), "-D", folder_.file("data")},
                            .environment = {{"LC_ALL", "C"}},
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
