// A mutex whose use clang checks: a member names its mutex, and scripts/lint fails where that is
// not held.
//
//   Mutex mutex_;
//   std::condition_variable_any changed_;
//   int count_ OUTBOX_GUARDED_BY(mutex_){0};
//   ...
//   const MutexLock lock(mutex_);
//   changed_.wait(mutex_, [this]() OUTBOX_REQUIRES(mutex_) { return count_ > 0; });
//
// g++ sees a plain mutex. A member and the mutex that guards it belong to the same object.
#pragma once

#include <mutex>

#if defined(__clang__)
#define OUTBOX_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define OUTBOX_THREAD_SAFETY(attribute)
#endif

/// The member may be used only with this mutex held.
#define OUTBOX_GUARDED_BY(mutex) OUTBOX_THREAD_SAFETY(guarded_by(mutex))
/// The caller of the function must hold this mutex.
#define OUTBOX_REQUIRES(mutex) OUTBOX_THREAD_SAFETY(requires_capability(mutex))

namespace outbox {

class OUTBOX_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  void lock() OUTBOX_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
  void unlock() OUTBOX_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds the mutex until the end of the block.
class OUTBOX_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) OUTBOX_THREAD_SAFETY(acquire_capability(mutex)) : lock_(mutex) {}
  ~MutexLock() OUTBOX_THREAD_SAFETY(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  MutexLock(MutexLock&&) = delete;
  MutexLock& operator=(MutexLock&&) = delete;

 private:
  const std::scoped_lock<Mutex> lock_;
};

}  // namespace outbox
