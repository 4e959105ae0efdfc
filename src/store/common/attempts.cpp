#include "store/common/attempts.hpp"

#include <condition_variable>
#include <mutex>
#include <random>
#include <string>

#include "base/backoff.hpp"
#include "base/error.hpp"

namespace outbox::store {
namespace {

void refuse(const char* message) {
  throw Exception(
      fail(Errc::invalid_argument, std::string("with_transaction: ") + message).value());
}

std::uint64_t any_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace

Attempts::Attempts(const RetryOptions& options) : options_(options), seed_(any_seed()) {
  if (options.attempts == 0) refuse("attempts: must be at least 1");
  if (options.first_pause.count() < 0) refuse("first_pause: is negative");
  if (options.longest_pause < options.first_pause)
    refuse("longest_pause: is shorter than first_pause");
}

bool Attempts::calls_conflict(const std::exception& thrown) const {
  return options_.is_conflict && options_.is_conflict(thrown);
}

bool Attempts::next() {
  if (made_ >= options_.attempts || options_.stop.stop_requested()) return false;
  const auto pause = backoff({.first = options_.first_pause, .longest = options_.longest_pause},
                             static_cast<int>(made_), seed_);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  (void)never.wait_for(lock, options_.stop, pause, [] { return false; });
  ++made_;
  return !options_.stop.stop_requested();
}

}  // namespace outbox::store
