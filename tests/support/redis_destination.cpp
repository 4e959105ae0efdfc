// A stream of Redis. It sends with the sink's own script, so that both do the same work on the
// server.
#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <outbox/event.hpp>
#include <vector>

#include "base/reference.hpp"
#include "sink/endpoint.hpp"
#include "sink/redis/script.hpp"
#include "support/destinations.hpp"
#include "support/failure.hpp"

namespace outbox::test {
namespace {

constexpr std::size_t kMostRedisInFlight = 1000;
constexpr const char* kWindowMs = "600000";  // the sink's default
constexpr std::array<sink::Scheme, 1> kRedisSchemes{{{"redis", 6379}}};

struct FreeContext {
  void operator()(redisContext* context) const noexcept { redisFree(context); }
};
struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;
using Words = std::initializer_list<std::string_view>;

class RedisConnection {
 public:
  explicit RedisConnection(const std::string& url) {
    FieldErrors errors;
    const auto endpoints = sink::parse_endpoints("url", url, kRedisSchemes, errors);
    must(errors.status());
    const sink::Endpoint& server = endpoints.front();
    context_.reset(redisConnectWithTimeout(server.host.c_str(), server.port,
                                           timeval{.tv_sec = 10, .tv_usec = 0}));
    if (!context_ || context_->err != 0) fail_with(context_ ? context_->errstr : "no memory");
    if (server.username.empty() && !server.password.empty()) (void)run({"AUTH", server.password});
    if (!server.username.empty()) (void)run({"AUTH", server.username, server.password});
  }

  Reply run(Words words) {
    append(words);
    return next();
  }
  void append(Words words) {
    std::array<const char*, 16> starts{};
    std::array<std::size_t, 16> sizes{};
    std::size_t count = 0;
    for (const std::string_view word : words) {
      starts.at(count) = word.data();
      sizes.at(count++) = word.size();
    }
    if (redisAppendCommandArgv(context_.get(), static_cast<int>(count), starts.data(),
                               sizes.data()) != REDIS_OK)
      fail_with(context_->errstr);
  }
  /// The reply to the oldest command.
  Reply next() {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) fail_with(context_->errstr);
    Reply owned(static_cast<redisReply*>(reply));
    if (owned->type == REDIS_REPLY_ERROR) fail_with(owned->str);
    return owned;
  }

 private:
  [[noreturn]] static void fail_with(const std::string& text) {
    give_up(Errc::unavailable, "redis: " + text);
  }
  std::unique_ptr<redisContext, FreeContext> context_;
};

class RedisDestination final : public Destination {
 public:
  RedisDestination(std::string stream, std::string url)
      : stream_(std::move(stream)), url_(std::move(url)), connection_(url_) {}
  ~RedisDestination() override {
    if (made_) (void)connection_.run({"DEL", stream_});
  }

  void open() override { made_ = true; }
  void keep() override { made_ = false; }
  SubscriptionSpec subscription(const std::string& name) const override {
    SubscriptionSpec spec{.name = name, .sink = "redis"};
    spec.topic = literal(stream_);
    spec.sink_settings["url"] = literal(url_);
    return spec;
  }
  void read(const Each& each, std::chrono::milliseconds wait) override {
    const std::string block = std::to_string(std::max<std::int64_t>(wait.count(), 1));
    while (true) {
      const Reply reply =
          connection_.run({"XREAD", "COUNT", "1000", "BLOCK", block, "STREAMS", stream_, last_});
      if (reply->type != REDIS_REPLY_ARRAY) return;
      const redisReply& entries = *reply->element[0]->element[1];
      for (std::size_t i = 0; i < entries.elements; ++i) take(*entries.element[i], each);
    }
  }
  std::size_t count() override {
    return static_cast<std::size_t>(connection_.run({"XLEN", stream_})->integer);
  }
  void send(const std::string& key, const std::string& message) override {
    if (hash_.empty()) {
      const Reply loaded = connection_.run({"SCRIPT", "LOAD", sink::redis::kScript});
      hash_.assign(loaded->str, loaded->len);
    }
    const std::string id = EventId::generate().str();
    connection_.append({"EVALSHA", hash_, "2", stream_, "outbox:{" + stream_ + "}:" + id, kWindowMs,
                        "0", "outbox-id", id, "key", key, "body", message});
    if (++in_flight_ >= kMostRedisInFlight) confirm(kMostRedisInFlight / 2);
  }
  void flush() override { confirm(0); }
  std::string place() const override { return "Redis stream " + stream_; }

 private:
  void confirm(std::size_t left) {
    for (; in_flight_ > left; --in_flight_) (void)connection_.next();
  }
  void take(const redisReply& entry, const Each& each) {
    last_.assign(entry.element[0]->str, entry.element[0]->len);
    const redisReply& fields = *entry.element[1];
    for (std::size_t i = 0; i + 1 < fields.elements; i += 2) {
      const redisReply& value = *fields.element[i + 1];
      if (std::string_view(fields.element[i]->str, fields.element[i]->len) == "body")
        each({value.str, value.len});
    }
  }

  const std::string stream_;
  const std::string url_;
  RedisConnection connection_;
  bool made_{false};
  std::string last_{"0"};
  std::string hash_;
  std::size_t in_flight_{0};
};

}  // namespace

std::unique_ptr<Destination> redis_destination(const std::string& stream, const std::string& url) {
  return std::make_unique<RedisDestination>(stream, url);
}

}  // namespace outbox::test
