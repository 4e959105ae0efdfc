#include "sink/rabbitmq/queue_check.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace outbox::sink::rabbitmq {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kEnoughMembers = 3;

/// Null if there is none. What is empty may be a list instead of an object.
Json member(const Json& object, const std::string& name) {
  return object.is_object() && object.contains(name) ? object.at(name) : Json();
}

std::string text_at(const Json& object, const std::string& name) {
  const Json value = member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

class Queue {
 public:
  explicit Queue(const Json& reply) : reply_(reply) {
    look_at_durability();
    // Streams are logs: to have limits is their nature.
    if (type_ != "stream") look_at_limits();
  }
  [[nodiscard]] std::vector<Weakness> take() { return std::move(found_); }

 private:
  void add(std::string property, std::string meaning) {
    found_.push_back({std::move(property), std::move(meaning)});
  }

  void look_at_durability() {
    if (member(reply_, "durable") == false)
      add("durable = false", "it is lost with its events when the server restarts");
    if (member(reply_, "auto_delete") == true)
      add("auto_delete = true", "it is removed with its events when its last consumer leaves");
    if (member(reply_, "exclusive") == true)
      add("exclusive = true", "it is removed with its events when a connection is closed");
    if (type_ == "classic")
      add("type = classic", "its events are lost with the disk of one server; use type quorum");
    const Json members = member(reply_, "members");
    if (members.is_array() && members.size() < kEnoughMembers)
      add(fmt::format("members = {}", members.size()),
          "fewer than 3 servers have its events: one that fails makes it unavailable");
  }

  void look_at_limits() {
    const Json overflow = in_force("overflow");
    const bool refuses =
        overflow.is_string() && overflow.get<std::string>().starts_with("reject-publish");
    for (const char* limit : {"max-length", "max-length-bytes"}) {
      const Json value = in_force(limit);
      if (!value.is_null() && !refuses)
        add(fmt::format("{} = {}", limit, value.dump()),
            "when it is full it drops its oldest events, read or not; use overflow = reject-publish");
    }
    for (const char* limit : {"message-ttl", "expires"}) {
      const Json value = in_force(limit);
      if (!value.is_null())
        add(fmt::format("{} = {}", limit, value.dump()),
            "its events are removed after this time (in ms), read or not");
    }
  }

  /// By an argument or a policy.
  [[nodiscard]] Json in_force(const std::string& name) const {
    const Json argument = member(member(reply_, "arguments"), "x-" + name);
    return argument.is_null() ? member(member(reply_, "effective_policy_definition"), name)
                              : argument;
  }

  const Json& reply_;
  const std::string type_{text_at(reply_, "type")};
  std::vector<Weakness> found_;
};

}  // namespace

Result<std::vector<Weakness>> check_queue(std::string_view reply) {
  const Json json = Json::parse(reply, nullptr, false);
  if (!json.is_object() || !json.contains("durable"))
    return fail(Errc::unavailable, "rabbitmq: the answer is not about a queue",
                "check rabbitmq.management_url");
  return Queue(json).take();
}

}  // namespace outbox::sink::rabbitmq
