// The lock file of the owning relay, FILE.relay.lock. The kernel releases the lock when the owner's
// process ends, however it ends. The owner writes its id into the file: when a relay gets the lock
// of a file that contains the id of the row's owner, that owner is gone. A file that was deleted
// and recreated contains no id.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::store::sqlite {

class OwnerLock {
 public:
  explicit OwnerLock(std::string path) : path_(std::move(path)) {}
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;
  OwnerLock(OwnerLock&&) = delete;
  OwnerLock& operator=(OwnerLock&&) = delete;
  ~OwnerLock() { release(); }

  /// Tries to take the lock, without waiting. Returns true if the lock is ours and the path still
  /// names the file that we have locked.
  [[nodiscard]] Result<bool> acquire();
  /// The id that the last owner wrote. Must be called only while the lock is ours.
  [[nodiscard]] std::string owner() const;
  [[nodiscard]] Status write_owner(std::string_view id);
  void release() noexcept;
  [[nodiscard]] bool held() const { return fd_ >= 0; }

 private:
  [[nodiscard]] bool is_current() const;

  const std::string path_;
  int fd_{-1};
};

}  // namespace outbox::store::sqlite
