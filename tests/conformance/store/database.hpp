// A fresh, empty database for one test, on any store. The suite uses the store through store/store.hpp only; what a test needs
// from outside the store (an application that rolls back, a newer schema) the database provides.
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
  /// An application enqueues the event in a transaction of its own and rolls it back.
  virtual void enqueue_and_roll_back(const Event& event) = 0;
  /// As if a newer program had migrated it.
  virtual void make_schema_too_new() = 0;
};

struct Backend {
  std::string name;
  /// Why it is not available here; empty: it is.
  std::function<std::string()> missing;
  std::function<std::unique_ptr<Database>()> create;
};

/// Defined by the backend's source file: each is a program of its own.
[[nodiscard]] std::vector<Backend> backends();

inline std::ostream& operator<<(std::ostream& out, const Backend& backend) {
  return out << backend.name;
}

}  // namespace outbox::conformance
