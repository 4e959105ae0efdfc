#include "base/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/error.hpp"

namespace outbox {
namespace {

tl::unexpected<Error> failed(int error) {
  return fail(Errc::not_found, std::generic_category().message(error));
}

}  // namespace

Result<TextFile> read_text_file(const std::string& path, std::size_t most_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed(errno);
  auto file = read_text(fd, most_bytes);
  close(fd);
  return file;
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

}  // namespace outbox
