#include "conformance/sink/smtp_server.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "event/base64.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

/// A Python that has aiosmtpd; empty if there is none. Another Python that comes first in PATH does
/// not see Debian's packages.
const std::string& python() {
  static const std::string found = [] {
    for (const std::string name : {"python3", "/usr/bin/python3"}) {
      ChildProcess tried(
          ChildProcess::Options{.command = {"/usr/bin/env", name, "-c", "import aiosmtpd.smtp"}});
      if (tried.wait() == 0) return name;
    }
    return std::string();
  }();
  return found;
}

std::string bytes(const nlohmann::json& base64) {
  return event::read_base64(base64.get<std::string>()).value();
}

ReceivedMail parse_mail(const nlohmann::json& json) {
  ReceivedMail mail{.from = json["from"],
                    .to = json["to"],
                    .utf8 = json["utf8"],
                    .tls = json["tls"],
                    .user = json["user"],
                    .hello = json["hello"],
                    .text = bytes(json["text"]),
                    .id = json["id"],
                    .headers = json["headers"],
                    .twice = json.value("twice", std::vector<std::string>()),
                    .time = json.value("time", 0.0),
                    .people = {},
                    .type = json["type"],
                    .charset = json.value("charset", ""),
                    .body = bytes(json["body"]),
                    .defects = json.value("defects", std::vector<std::string>())};
  for (const auto& one : json.value("people", nlohmann::json::array()))
    mail.people.emplace_back(one[0], one[1]);
  return mail;
}

}  // namespace

bool no_smtp_server() { return python().empty(); }

SmtpServer::SmtpServer(Options options) : options_(std::move(options)) { start(); }

void SmtpServer::start() {
  const std::string ready = folder_.file("port");
  std::filesystem::remove(ready);
  std::vector<std::string> command{"/usr/bin/env", python(), OUTBOX_SMTP_SERVER,   "--folder",
                                   folder_.path(), "--port", std::to_string(port_)};
  if (options_.certificate) {
    command.insert(command.end(), {"--certificate", options_.certificate->file, "--key",
                                   options_.certificate->key});
  }
  if (options_.implicit) command.emplace_back("--implicit");
  if (options_.login) command.emplace_back("--login");
  command.insert(command.end(), {"--most", std::to_string(options_.most_bytes)});
  if (!options_.utf8) command.emplace_back("--no-utf8");
  process_ = std::make_unique<ChildProcess>(
      ChildProcess::Options{.command = command, .output = folder_.file("log")});
  if (!eventually([&] { return std::filesystem::exists(ready) || !process_->running(); }) ||
      !process_->running())
    throw std::runtime_error("the mail server did not start");
  std::ifstream(ready) >> port_;
}

void SmtpServer::plan(const Plan& plan) {
  const std::string file = folder_.file("plan");
  std::ofstream(file + ".new") << nlohmann::json(plan).dump();
  std::filesystem::rename(file + ".new", file);
}

std::vector<ReceivedMail> SmtpServer::mails(bool brief) const {
  const TempDir folder;
  const std::string output = folder.file("mails.json");
  std::vector<std::string> command{"/usr/bin/env", python(), OUTBOX_READ_MAILS,
                                   folder_.file("mails")};
  if (brief) command.emplace_back("--brief");
  ChildProcess reader(ChildProcess::Options{.command = command, .output = output});
  const auto status = reader.wait();
  std::ifstream lines(output);
  if (status != 0) {
    const std::string said{std::istreambuf_iterator<char>(lines), {}};
    throw std::runtime_error("the mails cannot be read: " + said);
  }
  std::vector<ReceivedMail> all;
  for (std::string line; std::getline(lines, line);)
    all.push_back(parse_mail(nlohmann::json::parse(line)));
  return all;
}

std::size_t SmtpServer::lines_in(const std::string& file) const {
  std::ifstream lines(folder_.file(file));
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(lines), std::istreambuf_iterator<char>(), '\n'));
}

}  // namespace outbox::test
