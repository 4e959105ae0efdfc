#include "config/problem.hpp"

namespace outbox::config {

std::string Problem::text() const { return error().text(); }

Error Problem::error() const {
  return {.code = Errc::invalid_argument,
          .remedy = Remedy::fix,
          .effect = Effect::none,
          .message = where.empty() ? what : what + ": " + where,
          .hint = hint,
          .origin = {}};
}

std::string place(const std::string& file, Position at) {
  if (at.line == 0) return file;
  return file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

}  // namespace outbox::config
