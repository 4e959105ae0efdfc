#include "store/sqlite/path.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::string_view kScheme = "sqlite:";

// The types of NFS and of the SMB clients in statfs(2).
constexpr std::array<unsigned long, 4> kNetworkTypes{0x6969UL, 0x517BUL, 0xFF534D42UL,
                                                     0xFE534D42UL};

bool on_network(const std::string& directory) {
  struct statfs found {};
  if (::statfs(directory.c_str(), &found) != 0) return false;
  const auto type = static_cast<unsigned long>(found.f_type) & 0xFFFFFFFFUL;
  for (const unsigned long network : kNetworkTypes) {
    if (type == network) return true;
  }
  return false;
}

std::string reason(int error) { return std::generic_category().message(error); }

Status check_directory(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  struct stat found {};
  if (::stat(directory.c_str(), &found) != 0) {
    return fail(Errc::not_found, "sqlite: directory " + directory + ": " + reason(errno),
                "create the directory first");
  }
  if (!S_ISDIR(found.st_mode))
    return fail(Errc::invalid_argument, "sqlite: " + directory + " is not a directory",
                "name a file in a directory that exists");
  if (::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return fail(
        Errc::permission_denied, "sqlite: directory " + directory + ": " + reason(errno),
        "SQLite puts " + path + "-wal and -shm beside the file, so the directory must be writable");
  }
  if (on_network(directory)) {
    return fail(Errc::unsupported, "sqlite: " + path + " is on a network file system",
                "use a local disk, or PostgreSQL for programs on several machines");
  }
  return {};
}

}  // namespace

std::string written_path(std::string_view url) {
  if (url.starts_with(kScheme)) url.remove_prefix(kScheme.size());
  if (url.starts_with("//")) url.remove_prefix(2);
  return std::string(url);
}

Result<std::string> parse_path(std::string_view url) {
  const std::string path = written_path(url);
  if (url.starts_with("sqlite://")) {
    if (!path.starts_with('/')) {
      return fail(Errc::invalid_argument, "names a host after sqlite://",
                  "sqlite:PATH, or sqlite:///absolute/path with three slashes");
    }
  }
  if (path.empty()) return fail(Errc::invalid_argument, "has no path", "sqlite:PATH");
  if (path.find('\0') != std::string::npos) return fail(Errc::invalid_argument, "has a NUL byte");
  if (path.starts_with('~')) {
    return fail(Errc::invalid_argument, "begins with ~, which only a shell replaces",
                "write the directory out; in a configuration file ${env:HOME} stands for it");
  }
  if (path == ":memory:") {
    return fail(Errc::unsupported,
                "is a SQLite database in memory, which one connection only can see",
                "name a file: sqlite:PATH");
  }
  std::error_code error;
  const auto absolute = std::filesystem::absolute(std::filesystem::path(path), error);
  if (error) return fail(Errc::invalid_argument, "is no path: " + error.message());
  return absolute.lexically_normal().string();
}

Status check_path(const std::string& path, bool create) {
  OUTBOX_TRY(check_directory(path));
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT && create) return {};
    if (errno == ENOENT) {
      return fail(Errc::not_found, "sqlite: " + path + " does not exist",
                  "create it: outbox migrate --store sqlite:" + path);
    }
    return fail(Errc::permission_denied, "sqlite: " + path + ": " + reason(errno));
  }
  if (S_ISDIR(found.st_mode))
    return fail(Errc::invalid_argument, "sqlite: " + path + " is a directory",
                "name a file in it: sqlite:" + (std::filesystem::path(path) / "shop.db").string());
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) != 0) {
    return fail(Errc::permission_denied, "sqlite: " + path + ": " + reason(errno),
                "the relay writes its progress into the file, so it must be writable");
  }
  return {};
}

}  // namespace outbox::store::sqlite
