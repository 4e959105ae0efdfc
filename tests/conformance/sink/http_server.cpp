#include "conformance/sink/http_server.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "event/base64.hpp"
#include "support/eventually.hpp"

namespace outbox::test {

std::string Received::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpServer::HttpServer(std::optional<Certificate> certificate, bool clients, std::string script)
    : certificate_(std::move(certificate)), clients_(clients), script_(std::move(script)) {
  start();
}

std::string HttpServer::origin() const {
  return (certificate_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
}

void HttpServer::start() {
  const std::string ready = folder_.file("port");
  std::filesystem::remove(ready);
  std::vector<std::string> command{
      "/usr/bin/env",       "python3",      OUTBOX_HTTP_SERVERS "/" + script_,
      "--folder",           folder_.path(), "--port",
      std::to_string(port_)};
  if (certificate_) {
    const std::vector<std::string> tls{"--certificate", certificate_->file, "--key",
                                       certificate_->key};
    command.insert(command.end(), tls.begin(), tls.end());
  }
  if (clients_) command.insert(command.end(), {"--clients", certificate_->file});
  process_ = std::make_unique<ChildProcess>(
      ChildProcess::Options{.command = command, .output = folder_.file("log")});
  if (!eventually([&] { return std::filesystem::exists(ready) || !process_->running(); }) ||
      !process_->running())
    throw std::runtime_error("the HTTP server did not start");
  std::ifstream(ready) >> port_;
}

void HttpServer::answer_all(int status) {
  const std::string mode = folder_.file("mode");
  if (status == 0) {
    std::filesystem::remove(mode);
    return;
  }
  std::ofstream(mode + ".new") << status;
  std::filesystem::rename(mode + ".new", mode);
}

std::vector<Received> HttpServer::received() const {
  std::ifstream lines(record());
  std::vector<Received> all;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    all.push_back({.status = json["status"],
                   .method = json["method"],
                   .path = json["path"],
                   .headers = json["headers"],
                   .body = event::read_base64(json["body"].get<std::string>()).value(),
                   .active = json["active"]});
  }
  return all;
}

}  // namespace outbox::test
