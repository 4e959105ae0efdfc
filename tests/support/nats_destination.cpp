// A stream of NATS JetStream, kept in files, with one subject that has the stream's name.
#include <nats/nats.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <outbox/event.hpp>

#include "base/reference.hpp"
#include "sink/endpoint.hpp"
#include "support/destinations.hpp"
#include "support/failure.hpp"

namespace outbox::test {
namespace {

constexpr std::int64_t kMostNatsInFlight = 4000;  // the sink's default
constexpr std::int64_t kLimitMs = 20'000;
constexpr std::array<sink::Scheme, 1> kNatsSchemes{{{"nats", 4222}}};

template <auto destroy>
struct NatsDelete {
  template <class T>
  void operator()(T* thing) const noexcept {
    destroy(thing);
  }
};
template <class T, auto destroy>
using Owned = std::unique_ptr<T, NatsDelete<destroy>>;

void check(natsStatus status, const std::string& what) {
  if (status != NATS_OK)
    give_up(Errc::unavailable, "nats: " + what + ": " + natsStatus_GetText(status));
}

/// The client puts names and passwords into JSON as they are, so they must be escaped.
std::string escaped(const std::string& text) {
  const std::string quoted = nlohmann::json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

class NatsDestination final : public Destination {
 public:
  NatsDestination(std::string stream, std::string url)
      : stream_(std::move(stream)), url_(std::move(url)) {
    connect();
    jsOptions defaults;
    jsOptions_Init(&defaults);
    defaults.PublishAsync.MaxPending = kMostNatsInFlight;
    defaults.PublishAsync.StallWait = kLimitMs;
    jsCtx* context = nullptr;
    check(natsConnection_JetStream(&context, connection_.get(), &defaults), "JetStream");
    context_.reset(context);
  }
  ~NatsDestination() override {
    subscription_.reset();
    if (made_) js_DeleteStream(context_.get(), stream_.c_str(), nullptr, nullptr);
  }

  void open() override {
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    const char* subject = stream_.c_str();
    config.Name = subject;
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    check(js_AddStream(nullptr, context_.get(), &config, nullptr, nullptr), "making the stream");
    made_ = true;
  }
  void keep() override { made_ = false; }
  SubscriptionSpec subscription(const std::string& name) const override {
    SubscriptionSpec spec{.name = name, .sink = "nats"};
    spec.topic = literal(stream_);
    spec.sink_settings["url"] = literal(url_);
    spec.sink_settings["stream"] = stream_;
    return spec;
  }
  void read(const Each& each, std::chrono::milliseconds wait) override {
    if (!subscription_) subscribe();
    std::int64_t patience = std::max<std::int64_t>(wait.count(), 1);
    while (true) {
      natsMsg* next = nullptr;
      const natsStatus status = natsSubscription_NextMsg(&next, subscription_.get(), patience);
      if (status == NATS_TIMEOUT) return;
      check(status, "reading");
      const Owned<natsMsg, natsMsg_Destroy> message(next);
      each({natsMsg_GetData(next), static_cast<std::size_t>(natsMsg_GetDataLength(next))});
      patience = 1;
    }
  }
  std::size_t count() override {
    jsStreamInfo* info = nullptr;
    check(js_GetStreamInfo(&info, context_.get(), stream_.c_str(), nullptr, nullptr), "counting");
    const Owned<jsStreamInfo, jsStreamInfo_Destroy> owned(info);
    return info->State.Msgs;
  }
  void send(const std::string& /*key*/, const std::string& message) override {
    const std::string id = EventId::generate().str();
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.MsgId = id.c_str();
    options.ExpectStream = stream_.c_str();
    check(js_PublishAsync(context_.get(), stream_.c_str(), message.data(),
                          static_cast<int>(message.size()), &options),
          "publishing");
  }
  void flush() override {
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.MaxWait = kLimitMs;
    check(js_PublishAsyncComplete(context_.get(), &options), "confirmations");
  }
  std::string place() const override { return "NATS stream " + stream_; }

 private:
  void connect() {
    FieldErrors errors;
    const auto endpoints = sink::parse_endpoints("url", url_, kNatsSchemes, errors);
    must(errors.status());
    const sink::Endpoint& server = endpoints.front();
    natsOptions* made = nullptr;
    check(natsOptions_Create(&made), "options");
    const Owned<natsOptions, natsOptions_Destroy> options(made);
    natsOptions_SetURL(made, server.shown().c_str());
    if (!server.username.empty())
      natsOptions_SetUserInfo(made, escaped(server.username).c_str(),
                              escaped(server.password).c_str());
    natsConnection* connection = nullptr;
    check(natsConnection_Connect(&connection, made), "connecting to " + server.shown());
    connection_.reset(connection);
  }
  /// Reads from the beginning of the stream, in its order.
  void subscribe() {
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Ordered = true;
    natsSubscription* made = nullptr;
    check(js_SubscribeSync(&made, context_.get(), stream_.c_str(), nullptr, &options, nullptr),
          "reading the stream");
    subscription_.reset(made);
    natsSubscription_SetPendingLimits(made, -1, -1);
  }

  const std::string stream_;
  const std::string url_;
  bool made_{false};
  Owned<natsConnection, natsConnection_Destroy> connection_;
  Owned<jsCtx, jsCtx_Destroy> context_;
  Owned<natsSubscription, natsSubscription_Destroy> subscription_;
};

}  // namespace

std::unique_ptr<Destination> nats_destination(const std::string& stream, const std::string& url) {
  return std::make_unique<NatsDestination>(stream, url);
}

}  // namespace outbox::test
