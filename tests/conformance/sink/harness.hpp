// One kind of sink under the conformance suite: how to make it, how to see what arrived, how to make it fail.
#pragma once

#include <cstddef>
#include <memory>
#include <ostream>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "conformance/sink/load.hpp"

namespace outbox::test {

class Harness {
 public:
  Harness() = default;
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;
  virtual ~Harness() = default;

  [[nodiscard]] virtual std::unique_ptr<Sink> make() = 0;
  [[nodiscard]] virtual std::string topic() const { return "order.events"; }

  /// How many messages to send where so many are usual: fewer where each one takes several round trips.
  [[nodiscard]] virtual std::size_t share_of(std::size_t usual) const { return usual; }
  /// False: it keeps nothing, delivered() is empty.
  [[nodiscard]] virtual bool keeps() const { return true; }
  /// What is at the destination, in order of arrival (per partition).
  [[nodiscard]] virtual std::vector<Arrived> delivered() = 0;

  /// Called before a purge, which may leave a partly written line if the sink allows that.
  virtual void purging() {}

  /// The destination fails this message from now on.
  virtual void spoil(Load& /*load*/, std::size_t /*place*/) {}
  virtual void repair() {}
};

struct HarnessKind {
  const char* name;
  /// Null: the server it needs is missing.
  std::unique_ptr<Harness> (*make)();
  const char* needs;
  bool can_fail;
};

inline std::ostream& operator<<(std::ostream& out, const HarnessKind& kind) {
  return out << kind.name;
}

/// The harnesses linked into this program.
[[nodiscard]] std::vector<HarnessKind> harness_kinds();

}  // namespace outbox::test
