#include "store/sqlite/owner_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace outbox::store::sqlite {
namespace {

Error system_error(const std::string& what, int error) {
  return Error{
      .code = error == EACCES || error == EROFS ? Errc::permission_denied : Errc::unavailable,
      .remedy = Remedy::fix,
      .effect = Effect::none,
      .message = what + ": " + std::generic_category().message(error),
      .hint = "the relay needs to create and write this file",
      .origin = "errno:" + std::to_string(error)};
}

}  // namespace

Result<bool> OwnerLock::acquire() {
  if (held() && is_current()) return true;
  release();
  const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return fail(system_error("sqlite: lock file " + path_, errno));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(fd);
    if (error == EWOULDBLOCK || error == EINTR) return false;
    return fail(system_error("sqlite: lock file " + path_, error));
  }
  fd_ = fd;
  if (is_current()) return true;
  // The file was replaced between open and lock; the next attempt sees the new file.
  release();
  return false;
}

bool OwnerLock::is_current() const {
  struct stat ours {};
  struct stat named {};
  return ::fstat(fd_, &ours) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

std::string OwnerLock::owner() const {
  std::array<char, 64> text{};
  const ssize_t size = ::pread(fd_, text.data(), text.size(), 0);
  std::string owner(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  return owner.substr(0, owner.find('\n'));
}

Status OwnerLock::write_owner(std::string_view id) {
  const std::string text = std::string(id) + "\n";
  if (::ftruncate(fd_, 0) != 0 ||
      ::pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return fail(system_error("sqlite: lock file " + path_, errno));
  }
  return {};
}

// The file stays, since deleting it would let two relays lock two files of the same name.
void OwnerLock::release() noexcept {
  const int fd = std::exchange(fd_, -1);
  if (fd >= 0) ::close(fd);
}

}  // namespace outbox::store::sqlite
