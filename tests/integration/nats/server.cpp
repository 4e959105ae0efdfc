#include "integration/nats/server.hpp"

#include <fmt/format.h>
#include <nats/nats.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "event/base64.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

void must(natsStatus status, const std::string& what) {
  if (status != NATS_OK) throw std::runtime_error(what + ": " + natsStatus_GetText(status));
}

/// Escapes text for JSON, because the client puts it there as it is.
std::string escaped(const std::string& text) {
  const std::string quoted = Json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

class Client {
 public:
  explicit Client(const NatsServer& server) {
    natsOptions* options = nullptr;
    must(natsOptions_Create(&options), "options");
    natsOptions_SetURL(options, fmt::format("nats://127.0.0.1:{}", server.port).c_str());
    natsOptions_SetUserInfo(options, escaped(server.user).c_str(),
                            escaped(server.password).c_str());
    if (server.tls) {
      natsOptions_SetSecure(options, true);
      natsOptions_SkipServerVerification(options, true);
    }
    const natsStatus status = natsConnection_Connect(&connection_, options);
    natsOptions_Destroy(options);
    must(status, "connect");
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { natsConnection_Destroy(connection_); }

  [[nodiscard]] natsConnection* get() const { return connection_; }

  /// Returns the reply, which may be an error.
  [[nodiscard]] Json ask(const std::string& subject, const std::string& body) const {
    natsMsg* reply = nullptr;
    must(natsConnection_RequestString(&reply, connection_, subject.c_str(), body.c_str(), 20'000),
         subject);
    const Json json =
        Json::parse(natsMsg_GetData(reply), natsMsg_GetData(reply) + natsMsg_GetDataLength(reply));
    natsMsg_Destroy(reply);
    return json;
  }
  Json api(const std::string& subject, const std::string& body = "") const {
    Json json = ask("$JS.API." + subject, body);
    if (json.contains("error")) throw std::runtime_error(subject + ": " + json["error"].dump());
    return json;
  }

 private:
  natsConnection* connection_{nullptr};
};

std::string decoded(const Json& message, const char* field) {
  const auto text = message.value(field, "");
  const auto bytes = event::read_base64(text);
  if (!bytes) throw std::runtime_error("not base64: " + text);
  return *bytes;
}

/// Reads headers: NATS/1.0, and then "name: value" in lines.
std::map<std::string, std::string> parse_headers(std::string_view text) {
  std::map<std::string, std::string> headers;
  const auto line = [&] {
    const std::size_t end = text.find("\r\n");
    if (end == std::string_view::npos) throw std::runtime_error("a header without its end");
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(end + 2);
    return found;
  };
  if (text.empty()) return headers;
  if (line() != "NATS/1.0") throw std::runtime_error("no headers of NATS");
  while (!text.empty()) {
    const std::string_view one = line();
    if (one.empty()) continue;
    const std::size_t colon = one.find(": ");
    if (colon == std::string_view::npos) throw std::runtime_error("a header without a value");
    const bool fresh =
        headers.emplace(std::string(one.substr(0, colon)), std::string(one.substr(colon + 2)))
            .second;
    if (!fresh) throw std::runtime_error("the same header twice");
  }
  return headers;
}

Json merged(Json config, const Json& changes) {
  config.update(changes);
  return config;
}

std::string unique_name() {
  std::string name = TempDir().name();  // such as "outbox-test-x7Yz12"
  return "T" + name.substr(name.rfind('-') + 1);
}

}  // namespace

std::optional<NatsServer> shared_nats() {
  const auto url = environment("OUTBOX_TEST_NATS");
  if (!url) return std::nullopt;
  return NatsServer{.port = std::stoi(url->substr(url->rfind(':') + 1)),
                    .user = "outbox",
                    .password = environment("OUTBOX_TEST_NATS_PASSWORD").value_or("")};
}

// ---- OwnNats

OwnNats::OwnNats(const std::string& settings, bool jetstream) {
  std::string all = settings;
  for (std::size_t at = all.find("{DIR}"); at != std::string::npos; at = all.find("{DIR}"))
    all.replace(at, 5, folder_.path().string());
  if (all.find("authorization") == std::string::npos)
    all += "authorization { user = root, password = root }\n";
  std::ofstream file(folder_.file("nats.conf"));
  file << "host = 127.0.0.1\nport = -1\nports_file_dir = \"" << folder_.path().string() << "\"\n"
       << all;
  if (jetstream) file << "jetstream { store_dir = \"" << folder_.file("data") << "\" }\n";
  file.close();
  process_ = std::make_unique<ChildProcess>(
      ChildProcess::Options{.command = {environment("OUTBOX_TEST_NATS_SERVER").value_or(""),
                                        "--config", folder_.file("nats.conf")},
                            .output = folder_.file("log")});
  const bool up = eventually([this] {
    std::error_code missing;
    const auto size = std::filesystem::file_size(ports_file(), missing);
    return !process_->running() || (!missing && size > 0);
  });
  std::ifstream ports(ports_file());
  const Json json = Json::parse(ports, nullptr, false);
  if (!up || !json.is_object()) {
    std::ifstream log(folder_.file("log"));
    throw std::runtime_error("nats-server does not start: " +
                             std::string(std::istreambuf_iterator<char>(log), {}));
  }
  const auto url = json.at("nats").at(0).get<std::string>();
  port_ = std::stoi(url.substr(url.rfind(':') + 1));
}

std::string OwnNats::ports_file() const {
  return folder_.file(fmt::format("nats-server_{}.ports", process_->pid()));
}

// ---- NatsResponder

struct NatsResponder::Client {
  explicit Client(const NatsServer& server) : client(server) {}
  test::Client client;
  natsSubscription* subscription{nullptr};
};

NatsResponder::NatsResponder(const NatsServer& server, const std::string& subject)
    : client_(std::make_unique<Client>(server)) {
  const auto answer = [](natsConnection* connection, natsSubscription*, natsMsg* message, void*) {
    natsConnection_PublishString(connection, natsMsg_GetReply(message), "{\"hello\":1}");
    natsMsg_Destroy(message);
  };
  must(natsConnection_Subscribe(&client_->subscription, client_->client.get(), subject.c_str(),
                                answer, nullptr),
       "subscribe");
  must(natsConnection_Flush(client_->client.get()), "flush");
}

NatsResponder::~NatsResponder() { natsSubscription_Destroy(client_->subscription); }

// ---- NatsStream

NatsStream::NatsStream(NatsServer server, Json config)
    : server_(std::move(server)), name_(unique_name()) {
  config_ = merged({{"name", name_},
                    {"subjects", Json::array({name_ + ".>"})},
                    {"storage", "file"},
                    {"retention", "limits"},
                    {"discard", "new"},
                    {"max_consumers", -1},
                    {"max_msgs", -1},
                    {"max_bytes", -1},
                    {"max_age", 0},
                    {"max_msg_size", -1},
                    {"num_replicas", 1},
                    {"duplicate_window", 120'000'000'000LL}},
                   config);
  create();
}

NatsStream::~NatsStream() {
  try {
    remove();
  } catch (const std::exception&) {  // a test removed the stream, or its server
  }
}

void NatsStream::create() { Client(server_).api("STREAM.CREATE." + name_, config_.dump()); }

void NatsStream::change(const Json& config) {
  config_.update(config);
  Client(server_).api("STREAM.UPDATE." + name_, config_.dump());
}

void NatsStream::purge() { Client(server_).api("STREAM.PURGE." + name_); }

void NatsStream::remove() { Client(server_).api("STREAM.DELETE." + name_); }

void NatsStream::send(const std::vector<NatsStored>& messages) const {
  const Client client(server_);
  jsCtx* context = nullptr;
  must(natsConnection_JetStream(&context, client.get(), nullptr), "JetStream");
  const std::unique_ptr<jsCtx, void (*)(jsCtx*)> owner(context, jsCtx_Destroy);
  for (const NatsStored& one : messages) {
    natsMsg* message = nullptr;
    must(natsMsg_Create(&message, one.subject.c_str(), nullptr, one.body.data(),
                        static_cast<int>(one.body.size())),
         "message");
    for (const auto& [name, value] : one.headers)
      natsMsgHeader_Set(message, name.c_str(), value.c_str());
    const natsStatus status = js_PublishMsgAsync(context, &message, nullptr);
    natsMsg_Destroy(message);
    must(status, "publish");
  }
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = 60'000;
  must(js_PublishAsyncComplete(context, &options), "confirmations");
}

Json NatsStream::api(const std::string& subject, const Json& body) const {
  return Client(server_).api(subject, body.is_null() ? "" : body.dump());
}

std::vector<NatsStored> NatsStream::read() const {
  const Client client(server_);
  const Json state = client.api("STREAM.INFO." + name_).at("state");
  std::vector<NatsStored> found;
  for (auto seq = state.at("first_seq").get<std::uint64_t>();
       seq <= state.at("last_seq").get<std::uint64_t>(); ++seq) {
    const Json reply = client.ask("$JS.API.STREAM.MSG.GET." + name_, Json({{"seq", seq}}).dump());
    if (!reply.contains("message")) continue;  // the message was removed
    const Json& message = reply.at("message");
    found.push_back({.subject = message.at("subject"),
                     .headers = parse_headers(decoded(message, "hdrs")),
                     .body = decoded(message, "data")});
  }
  return found;
}

std::vector<Arrived> NatsStream::arrived() const {
  std::vector<Arrived> all;
  for (NatsStored& one : read()) {
    const auto key = one.headers.find("outbox-key");
    all.push_back({.id = one.headers["outbox-id"],
                   .key = key == one.headers.end() ? std::nullopt : std::optional(key->second),
                   .body = std::move(one.body)});
  }
  return all;
}

}  // namespace outbox::test
