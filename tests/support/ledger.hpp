// Collects what the writers of a test tried to commit.
#pragma once

#include <vector>

#include "base/mutex.hpp"
#include "support/judge.hpp"

namespace outbox::test {

/// The attempts of all writers. Any thread may use it.
class AttemptLog {
 public:
  void add(const std::vector<Attempt>& attempts) {
    const MutexLock lock(mutex_);
    attempts_.insert(attempts_.end(), attempts.begin(), attempts.end());
  }
  [[nodiscard]] std::vector<Attempt> all() const {
    const MutexLock lock(mutex_);
    return attempts_;
  }
  [[nodiscard]] std::size_t size() const {
    const MutexLock lock(mutex_);
    return attempts_.size();
  }

 private:
  mutable Mutex mutex_;
  std::vector<Attempt> attempts_ OUTBOX_GUARDED_BY(mutex_);
};

}  // namespace outbox::test
