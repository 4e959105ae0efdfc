#include "config/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/error.hpp"

namespace outbox::config {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<Error> failed(int error) {
  return fail(Errc::not_found, std::generic_category().message(error));
}

}  // namespace

Result<TextFile> read_text_file(const std::string& path, std::size_t most_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return failed(errno);
  return read_text(file.get(), most_bytes);
}

Result<TextFile> read_text(int fd, std::size_t most_bytes) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return failed(errno);
  TextFile read_file{.text = {}, .mode = status.st_mode};
  std::array<char, 16384> buffer{};
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0) return read_file;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    read_file.text.append(buffer.data(), static_cast<std::size_t>(got));
    if (read_file.text.size() > most_bytes) {
      return fail(Errc::too_large, "larger than " + std::to_string(most_bytes) + " bytes");
    }
  }
}

}  // namespace outbox::config
