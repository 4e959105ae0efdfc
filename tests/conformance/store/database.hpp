// A fresh database for one test, on any store. The suite uses the store only through
// store/store.hpp. The class Database does the rest that a test needs, as an application or a newer
// program does it.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <outbox/event.hpp>
#include <string>
#include <vector>

namespace outbox::conformance {

class Database {
 public:
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  Database(Database&&) = delete;
  Database& operator=(Database&&) = delete;
  virtual ~Database() = default;

  [[nodiscard]] virtual std::string url() const = 0;
  /// Enqueues the event in a transaction as an application does, and rolls it back.
  virtual void enqueue_and_roll_back(const Event& event) = 0;
  /// Changes the schema as if a newer program had migrated it.
  virtual void make_schema_too_new() = 0;
};

enum class Begin { empty, migrated };

struct Backend {
  std::string name;
  /// Why the backend is not available here; empty if it is.
  std::function<std::string()> missing;
  /// Makes one without a schema, or one that is migrated if a migrated one can be copied.
  std::function<std::unique_ptr<Database>(Begin)> create;
};

/// Defined by the source file of the backend, which is a program of its own.
[[nodiscard]] std::vector<Backend> backends();

inline std::ostream& operator<<(std::ostream& out, const Backend& backend) {
  return out << backend.name;
}

}  // namespace outbox::conformance
