#include "integration/redis/redis_client.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <regex>
#include <stdexcept>

#include "support/servers.hpp"

namespace outbox::test {
namespace {

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

Reply ask(redisContext* context, const Words& command) {
  std::vector<const char*> starts;
  std::vector<std::size_t> lengths;
  for (const std::string& word : command) {
    starts.push_back(word.data());
    lengths.push_back(word.size());
  }
  Reply reply(static_cast<redisReply*>(
      redisCommandArgv(context, static_cast<int>(starts.size()), starts.data(), lengths.data())));
  if (!reply) throw std::runtime_error(std::string("redis: ") + context->errstr);
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(reply->str);
  return reply;
}

std::string to_text(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER: return std::to_string(reply.integer);
    case REDIS_REPLY_NIL: return "";
    case REDIS_REPLY_ARRAY: {
      std::string all;
      for (std::size_t i = 0; i < reply.elements; ++i) all += to_text(*reply.element[i]) + "\n";
      return all;
    }
    default: return {reply.str, reply.len};
  }
}

}  // namespace

std::optional<std::string> RedisEntry::field(const std::string& name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? std::nullopt : std::optional(found->second);
}

void RedisClient::Free::operator()(redisContext* context) const noexcept { redisFree(context); }

RedisClient::RedisClient(int port, const std::string& password)
    : context_(redisConnectWithTimeout("127.0.0.1", port, timeval{.tv_sec = 10, .tv_usec = 0})) {
  if (!context_ || context_->err != 0) throw std::runtime_error("cannot connect to redis");
  if (!password.empty()) run({"AUTH", password});
}

std::string RedisClient::run(const Words& command) {
  return to_text(*ask(context_.get(), command));
}

bool RedisClient::answers(int port, const std::string& password) {
  try {
    return RedisClient(port, password).run({"PING"}) == "PONG";
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string RedisClient::info(const std::string& name) {
  const std::string all = run({"INFO"});
  const std::size_t at = all.find("\n" + name + ":");
  if (at == std::string::npos) return {};
  const std::size_t from = at + name.size() + 2;
  return all.substr(from, all.find('\r', from) - from);
}

std::vector<RedisEntry> RedisClient::entries(const std::string& stream) {
  const Reply reply = ask(context_.get(), {"XRANGE", stream, "-", "+"});
  std::vector<RedisEntry> all;
  for (std::size_t i = 0; i < reply->elements; ++i) {
    const redisReply& entry = *reply->element[i];
    const redisReply& fields = *entry.element[1];
    RedisEntry& read = all.emplace_back();
    read.id = to_text(*entry.element[0]);
    for (std::size_t f = 0; f + 1 < fields.elements; f += 2)
      read.fields.emplace_back(to_text(*fields.element[f]), to_text(*fields.element[f + 1]));
  }
  return all;
}

std::vector<Arrived> RedisClient::arrived(const std::string& stream) {
  std::vector<Arrived> all;
  for (const RedisEntry& entry : entries(stream)) {
    all.push_back({.id = entry.field("outbox-id").value_or(""),
                   .key = entry.field("key"),
                   .body = entry.field("body").value_or("(no body)")});
  }
  return all;
}

std::optional<SharedRedis> shared_redis() {
  const auto url = environment("OUTBOX_TEST_REDIS");
  std::smatch parts;
  static const std::regex kShape("redis://:([^@]*)@127\\.0\\.0\\.1:([0-9]+)");
  if (!url) return std::nullopt;
  if (!std::regex_match(*url, parts, kShape))
    throw std::runtime_error("OUTBOX_TEST_REDIS is not redis://:PASSWORD@127.0.0.1:PORT");
  return SharedRedis{.port = std::stoi(parts[2]), .password = parts[1]};
}

}  // namespace outbox::test
