#include "support/own_pgbouncer.hpp"

#include <libpq-fe.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/free_port.hpp"

namespace outbox::test {
namespace {

std::string program() {
  for (const char* path : {"/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"}) {
    if (std::filesystem::exists(path)) return path;
  }
  throw std::runtime_error("no pgbouncer on this machine");
}

}  // namespace

OwnPgBouncer::OwnPgBouncer(int server_port) : port_(free_port()) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  std::ofstream(folder_.file("pgbouncer.ini"))
      << "[databases]\n* = host=127.0.0.1 port=" << server_port
      << " user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << port_
      << "\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
      << "ignore_startup_parameters = extra_float_digits\n";
  start();
}

void OwnPgBouncer::restart() {
  process_->kill();
  start();
}

void OwnPgBouncer::start() {
  process_ = std::make_unique<ChildProcess>(
      ChildProcess::Options{.command = {program(), folder_.file("pgbouncer.ini")},
                            .output = folder_.file("log"),
                            .user = "postgres"});
  const bool answers = eventually([this] { return PQping(url("postgres").c_str()) == PQPING_OK; });
  if (!answers) throw std::runtime_error("pgbouncer does not answer");
}

std::string OwnPgBouncer::url(const std::string& database) const {
  return "postgresql://postgres@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

}  // namespace outbox::test
