// outbox/sink_conformance.hpp: the tests that our own sinks pass, for a sink of yours. They check
// what the relay relies on.
//
//   class ToMyBroker final : public outbox::conformance::Harness {
//    public:
//     std::unique_ptr<outbox::Sink> make() override { return std::make_unique<MySink>(address_); }
//     std::vector<outbox::conformance::Arrived> delivered() override { ... asks the broker ... }
//   };
//
//   std::vector<outbox::conformance::HarnessKind> outbox::conformance::harness_kinds() {
//     return {{.name = "my_broker", .make = []() -> std::unique_ptr<Harness> {
//                return std::make_unique<ToMyBroker>();
//              }}};
//   }
//
// In CMake: find_package(outbox COMPONENTS sink_conformance) and find_package(GTest), then link
// outbox::sink_conformance and GTest::gtest_main into a program of its own. The suite is compiled
// with that program, so that it fits your GoogleTest.
//
// Threads: One thread at a time: that of the tests.
// Lifetime: a harness outlives the sinks that it has made; each test gets a new one.
// Errors: a harness reports what it cannot do by a failure of GoogleTest, or an exception.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

namespace outbox::conformance {

/// Messages to send. The id of each contains its place, so that what arrived can be compared with
/// what was sent.
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

  /// Adds `count` small messages, over `keys` keys in turn.
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

/// A message as it was found at the destination; `id` is its header outbox-id.
struct Arrived {
  std::string id;
  std::optional<std::string> key;
  std::string body;
};

/// One kind of sink under the suite: how to make it, how to see what arrived, how to make it fail.
class Harness {
 public:
  Harness() = default;
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;
  Harness(Harness&&) = delete;
  Harness& operator=(Harness&&) = delete;
  virtual ~Harness();

  [[nodiscard]] virtual std::unique_ptr<Sink> make() = 0;
  [[nodiscard]] virtual std::string topic() const { return "order.events"; }

  /// How many messages a test sends where `usual` is the number for a fast destination. A
  /// destination that needs several round trips for each returns fewer.
  [[nodiscard]] virtual std::size_t scale(std::size_t usual) const { return usual; }
  /// Whether the destination keeps messages. If not, delivered() is empty.
  [[nodiscard]] virtual bool keeps() const { return true; }
  /// What is at the destination, in order of arrival (per partition).
  [[nodiscard]] virtual std::vector<Arrived> delivered() = 0;

  /// Called before a purge, which may leave a partly written line if the sink allows that.
  virtual void purging() {}

  /// Makes the destination fail this message, until repair() is called or, if the destination
  /// cannot be repaired, for good. A message that stays rejected need not arrive.
  virtual void spoil(Load& /*load*/, std::size_t /*place*/) {}
  virtual void repair() {}
};

struct HarnessKind {
  const char* name;
  /// Returns null if something that it needs is missing; its tests are skipped then.
  std::unique_ptr<Harness> (*make)();
  const char* needs{""};  ///< What it needs: the reason for the skip.
  bool can_fail{false};   ///< Whether spoil() works.
};

inline std::ostream& operator<<(std::ostream& out, const HarnessKind& kind) {
  return out << kind.name;
}

/// Defined by the program that uses the suite.
[[nodiscard]] std::vector<HarnessKind> harness_kinds();

}  // namespace outbox::conformance
