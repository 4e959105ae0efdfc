#include "store/sqlite/wal_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

namespace outbox::store::sqlite {

WalWatch::WalWatch(const std::string& database)
    : wal_path_(database + "-wal"),
      wal_name_(std::filesystem::path(wal_path_).filename().string()) {
  fd_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd_ < 0) return;
  const std::string directory = std::filesystem::path(wal_path_).parent_path().string();
  directory_ = ::inotify_add_watch(fd_, directory.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  watch_wal();
}

WalWatch::~WalWatch() {
  if (fd_ >= 0) ::close(fd_);
}

// The call returns the same watch again when the inode is the same.
void WalWatch::watch_wal() { wal_ = ::inotify_add_watch(fd_, wal_path_.c_str(), IN_MODIFY); }

bool WalWatch::drain() {
  if (fd_ < 0) return false;
  bool written = false;
  bool replaced = false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  while (true) {
    const ssize_t size = ::read(fd_, buffer.data(), buffer.size());
    if (size <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) written = replaced = true;
      if (event.wd == wal_) written = true;
      if (event.wd == directory_ && event.len > 0 && wal_name_ == name) written = replaced = true;
    }
  }
  if (replaced || (written && wal_ < 0)) watch_wal();
  return written;
}

}  // namespace outbox::store::sqlite
