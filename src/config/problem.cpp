#include "config/problem.hpp"

namespace outbox::config {

std::string Problem::text() const {
  return what + (where.empty() ? "" : ": " + where) + (hint.empty() ? "" : " (hint: " + hint + ")");
}

std::string place(const std::string& file, Position at) {
  if (at.line == 0) return file;
  return file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

}  // namespace outbox::config
