#include "sink/file/line_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace outbox::sink {
namespace {

constexpr std::size_t kReadBack = std::size_t{64} << 10U;

std::string find_directory(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

const char* hint_for(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT: return "free space on the disk; the relay then continues by itself";
    case EFBIG:
      return "the file has the largest size allowed here (ulimit -f, or the file system); rotate it";
    case EACCES:
    case EPERM: return "grant the relay's user write permission";
    case EROFS: return "the file system is mounted read-only";
    case EMFILE:
    case ENFILE: return "raise the limit of open files (ulimit -n)";
    case EIO: return "the disk or the network file system failed; see the kernel's log";
    default: return "";
  }
}

Errc code_for(int number) {
  switch (number) {
    case EACCES:
    case EPERM:
    case EROFS: return Errc::permission_denied;
    case ENOENT:
    case ENOTDIR: return Errc::not_found;
    default: return Errc::unavailable;
  }
}

/// The offset after the last line feed; 0 if there is none.
Result<std::uint64_t> end_of_last_line(int file, std::uint64_t size) {
  std::array<char, kReadBack> chunk;
  while (size > 0) {
    const std::uint64_t from = size > chunk.size() ? size - chunk.size() : 0;
    const auto got = ::pread(file, chunk.data(), static_cast<std::size_t>(size - from),
                             static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(Errc::unavailable, std::generic_category().message(errno));
    const std::string_view text(chunk.data(), static_cast<std::size_t>(got));
    if (const auto feed = text.rfind('\n'); feed != std::string_view::npos) return from + feed + 1;
    size = from;
  }
  return std::uint64_t{0};
}

}  // namespace

const Disk& Disk::real() {
  static constexpr Disk disk{.write = ::write, .sync = ::fdatasync};
  return disk;
}

LineFile::LineFile(std::string path, mode_t mode, std::string_view line_start, const Disk& disk)
    : path_(std::move(path)), mode_(mode), line_start_(line_start), disk_(disk) {}

LineFile::~LineFile() { close(); }

void LineFile::close() noexcept {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

Error LineFile::error(int number, std::string_view what) const {
  const Errc code = code_for(number);
  const Remedy remedy = code == Errc::unavailable ? Remedy::retry_call : Remedy::fix;
  return fail(code, remedy,
              fmt::format("file {}: {}: {}", path_, what, std::generic_category().message(number)),
              hint_for(number))
      .value();
}

// ---- opening

Status LineFile::open() {
  close();
  OUTBOX_TRY(open_at_path());
  for (const auto step : {&LineFile::check_kind, &LineFile::lock, &LineFile::remove_torn_line}) {
    if (Status done = (this->*step)(); !done) {
      close();
      return done;
    }
  }
  synced_ = end_;
  doubt_.reset();
  if (end_ > 0) return {};
  // The file is new, or was created by an earlier open() that failed.
  Status done = sync_directory();
  if (!done) close();
  return done;
}

Status LineFile::open_at_path() {
  // With O_NONBLOCK a named pipe at the path does not hang the relay; check_kind() refuses it.
  constexpr int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  file_ = ::open(path_.c_str(), flags);
  if (file_ < 0 && errno == ENOENT) {
    file_ = ::open(path_.c_str(), flags | O_CREAT | O_EXCL, mode_);
    if (file_ < 0 && errno == EEXIST) file_ = ::open(path_.c_str(), flags);
  }
  if (file_ >= 0) return {};
  const int number = errno;
  Error why = error(number, "cannot be opened");
  if (number == ENOENT) {
    why.message = fmt::format("file {}: directory {} does not exist", path_, find_directory(path_));
    why.hint = fmt::format("mkdir -p {}", find_directory(path_));
  } else if (number == EISDIR) {
    why.message = fmt::format("file {}: is a directory", path_);
    why.hint = "name a file in it";
  }
  return fail(std::move(why));
}

Status LineFile::check_kind() {
  struct stat found {};
  if (::fstat(file_, &found) != 0) return fail(error(errno, "cannot be inspected"));
  if (!S_ISREG(found.st_mode)) {
    return fail(Errc::invalid_argument, fmt::format("file {}: is not a regular file", path_),
                "for a pipe or a terminal use the sink \"stdout\"");
  }
  identity_ = {.device = found.st_dev, .inode = found.st_ino};
  end_ = static_cast<std::uint64_t>(found.st_size);
  return {};
}

Status LineFile::lock() {
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return fail(error(errno, "cannot be locked"));
  return fail(
      Errc::unavailable, Remedy::retry_call,
      fmt::format("file {}: another process has locked it", path_),
      "give each subscription its own file; a second relay gets the file when the first one ends");
}

/// Removes a last line without line feed: it was never acked and will be delivered again. The file
/// is refused if that line does not look like ours.
Status LineFile::remove_torn_line() {
  if (doubt_ && doubt_->identity == identity_ && doubt_->from < end_) {
    OUTBOX_TRY(truncate(doubt_->from));
  }
  const auto whole = end_of_last_line(file_, end_);
  if (!whole)
    return fail(Errc::unavailable,
                fmt::format("file {}: cannot be read: {}", path_, whole.error().message));
  if (*whole == end_) return {};
  std::string start(std::min<std::uint64_t>(line_start_.size(), end_ - *whole), '\0');
  if (::pread(file_, start.data(), start.size(), static_cast<off_t>(*whole)) !=
      static_cast<ssize_t>(start.size())) {
    return fail(error(errno, "cannot be read"));
  }
  // A power failure can leave zeros where data was not written yet.
  const bool zeros = start.find_first_not_of('\0') == std::string::npos;
  if (!zeros && !std::string_view(line_start_).starts_with(start)) {
    return fail(Errc::invalid_argument,
                fmt::format("file {}: ends with an incomplete line that is not ours", path_),
                "use a file that only this sink writes");
  }
  log::info("removed an incomplete last line", {{"file", path_}, {"bytes", end_ - *whole}});
  return truncate(*whole);
}

Status LineFile::truncate(std::uint64_t size) {
  if (::ftruncate(file_, static_cast<off_t>(size)) != 0)
    return fail(error(errno, "cannot be truncated to its last complete line"));
  end_ = size;
  return {};
}

/// Syncs the directory; without this a power failure could remove the new file's entry.
Status LineFile::sync_directory() const {
  const int directory = ::open(find_directory(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return fail(error(errno, "its directory cannot be opened"));
  const bool done =
      ::fsync(directory) == 0 || errno == EINVAL;  // This file system does not support it.
  const int number = errno;
  ::close(directory);
  return done ? Status() : fail(error(number, "its directory cannot be synced"));
}

Result<bool> LineFile::replaced() {
  struct stat found {};
  if (::stat(path_.c_str(), &found) != 0) {
    if (errno == ENOENT) return true;
    return fail(error(errno, "cannot be inspected"));
  }
  if (identity_ != Identity{.device = found.st_dev, .inode = found.st_ino}) return true;
  // The file was truncated from outside (copytruncate): the next line starts at its current end.
  end_ = static_cast<std::uint64_t>(found.st_size);
  synced_ = std::min(synced_, end_);
  return false;
}

// ---- writing

LineFile::Written LineFile::append(std::string_view lines, std::span<const std::size_t> ends) {
  std::size_t done = 0;
  int number = 0;
  while (done < lines.size()) {
    const ssize_t count = disk_.write(file_, lines.data() + done, lines.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      number = count == 0 ? ENOSPC : errno;
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  if (done == lines.size()) {
    end_ += done;
    return {.bytes = done, .failure = {}};
  }
  // Keeps the complete lines and removes the incomplete one.
  const auto after = std::upper_bound(ends.begin(), ends.end(), done);
  const std::size_t whole = after == ends.begin() ? 0 : *(after - 1);
  Written written{.bytes = whole, .failure = error(number, "cannot be written")};
  end_ += whole;
  if (done > whole && ::ftruncate(file_, static_cast<off_t>(end_)) != 0) {
    log::info(
        "an incomplete line could not be removed, it is removed when the file is opened again",
        {{"file", path_}});
  }
  return written;
}

Status LineFile::sync() {
  if (synced_ == end_) return {};
  if (disk_.sync(file_) == 0) {
    synced_ = end_;
    return {};
  }
  doubt_ = Doubt{.identity = identity_, .from = synced_};
  Error why = error(errno, "cannot be synced to the disk");
  why.effect = Effect::unknown;
  return fail(std::move(why));
}

}  // namespace outbox::sink
