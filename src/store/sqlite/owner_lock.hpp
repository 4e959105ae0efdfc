// The lock file of the owning relay, FILE.relay.lock. The kernel releases the lock when the owner's
// process ends, however it ends. The owner writes its id into the file: when a relay gets the lock
// of a file with the id of the row's owner, that owner is gone; a file that was deleted and
// recreated has no id.
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

  /// Tries to take the lock, without waiting. True: it is ours, and the path still names the file
  /// we have locked.
  [[nodiscard]] Result<bool> acquire();
  /// What the last owner wrote. Only while the lock is ours.
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
