// Watches writes to the WAL of a file (inotify). This is only a hint: a write is seen before its
// commit is visible, and a file system may not report any.
#pragma once

#include <string>

namespace outbox::store::sqlite {

class WalWatch {
 public:
  /// `database` is the file's own path. Without inotify, works() is false.
  explicit WalWatch(const std::string& database);
  WalWatch(const WalWatch&) = delete;
  WalWatch& operator=(const WalWatch&) = delete;
  WalWatch(WalWatch&&) = delete;
  WalWatch& operator=(WalWatch&&) = delete;
  ~WalWatch();

  [[nodiscard]] bool works() const { return fd_ >= 0 && wal_ >= 0; }
  /// A descriptor for poll(2), which is readable when drain() has something.
  [[nodiscard]] int fd() const { return fd_; }
  /// Takes what was reported so far. Returns whether the WAL was written to.
  bool drain();

 private:
  void watch_wal();

  const std::string wal_path_;
  const std::string wal_name_;
  int fd_{-1};
  int wal_{-1};        ///< The watch of the WAL itself.
  int directory_{-1};  ///< The watch of its directory, since the WAL may be deleted and recreated.
};

}  // namespace outbox::store::sqlite
