// Messages for tests of sinks: each with an id that contains its index, so that what arrived can be compared with what was sent.
#pragma once

#include <deque>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

namespace outbox::test {

class Load {
 public:
  struct Item {
    std::string topic;
    std::optional<std::string> key;
    std::string body;
    std::string content_type;
    std::string id_text;
    std::string seq_text;
    EventView event;
    std::vector<HeaderView> headers;
  };

  explicit Load(std::string topic = "order.events") : topic_(std::move(topic)) {}

  /// `count` small messages over `keys` keys, one after the other.
  void add_many(std::size_t count, std::size_t keys);
  Item& add(std::optional<std::string> key, std::string body,
            std::string content_type = "application/json");

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] const Item& item(std::size_t place) const { return items_[place]; }
  [[nodiscard]] Item& item(std::size_t place) { return items_[place]; }
  /// Valid as long as the load.
  [[nodiscard]] Message message(std::size_t place, Token token) const;

 private:
  std::string topic_;
  std::deque<Item> items_;
};

/// A message as it was found at the destination.
struct Arrived {
  std::string id;
  std::optional<std::string> key;
  std::string body;
};

/// The indices of the messages that arrived, in the order of arrival. Fails the test on one that was never sent.
[[nodiscard]] std::vector<std::size_t> places(const std::vector<Arrived>& arrived,
                                              const Load& load);

/// Each message of the load arrived, and of each key the first arrivals are in order. Messages in `except` did not arrive.
void expect_complete_and_ordered(const std::vector<std::size_t>& arrived, const Load& load,
                                 const std::vector<std::size_t>& except = {});

}  // namespace outbox::test
