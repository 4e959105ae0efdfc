#include "sink/file/file_sink.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "sink/json_line.hpp"

namespace outbox::sink {
namespace {

/// Lines are written in pieces of about this size, to bound the memory for a batch of large events.
constexpr std::size_t kFilePieceBytes = std::size_t{1} << 20U;
/// With this many unsynced events the sync is due at once, lest the relay's window fill up.
constexpr std::size_t kMostUnsynced = 5000;
constexpr std::size_t kMostUnsyncedBytes = std::size_t{4} << 20U;

constexpr std::string_view kInterval = "interval:";

}  // namespace

FileSink::FileSink(FileOptions options, const Disk& disk)
    : options_(std::move(options)), file_(options_.path, options_.mode, kLineStart, disk) {}

Status FileSink::open() {
  if (file_.is_open() && !failed_) return {};
  OUTBOX_TRY(file_.open());
  failed_ = false;
  return {};
}

void FileSink::close() noexcept { file_.close(); }

// ---- writing

std::size_t FileSink::send(std::span<const Message> messages) {
  if (messages.empty() || failed_ || !file_.is_open()) return 0;
  if (Status done = follow_rotation(); !done) {
    refuse(messages.front(), std::move(done.error()));
    return 1;
  }
  std::size_t taken = 0;
  while (taken < messages.size() && !failed_) taken += write_some(messages.subspan(taken));
  ack_if_durable();
  return taken;
}

/// Returns how many messages were taken; the last of them may have failed.
std::size_t FileSink::write_some(std::span<const Message> messages) {
  lines_.clear();
  ends_.clear();
  for (const Message& message : messages) {
    append_json_line(lines_, message);
    ends_.push_back(lines_.size());
    if (lines_.size() >= kFilePieceBytes) break;
  }
  auto [bytes, failure] = file_.append(lines_, ends_);
  const auto count =
      static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), bytes) - ends_.begin());
  if (written_.empty()) oldest_ = std::chrono::steady_clock::now();
  for (const Message& message : messages.first(count)) written_.push_back(message.token);
  written_bytes_ += bytes;
  if (!failure) return count;
  refuse(messages[count], std::move(*failure));
  return count + 1;
}

Status FileSink::follow_rotation() {
  const auto replaced = file_.replaced();
  if (!replaced) return tl::unexpected(replaced.error());
  if (!*replaced) return {};
  if (!written_.empty()) sync();
  if (failed_)
    return fail(Errc::unavailable,
                "file " + options_.path + ": the rotated file could not be synced");
  OUTBOX_TRY(file_.open());
  log::info("file was rotated, a new one is open", {{"file", options_.path}});
  return {};
}

// ---- outcomes

void FileSink::ack_if_durable() {
  if (written_.empty()) return;
  if (!options_.sync_after) return resolve_written(Outcome::Kind::acked, {});
  const bool due = std::chrono::steady_clock::now() - oldest_ >= *options_.sync_after;
  const bool much = written_.size() >= kMostUnsynced || written_bytes_ >= kMostUnsyncedBytes;
  if (due || failed_ || much) sync();
}

void FileSink::sync() {
  if (!options_.sync_after) return resolve_written(Outcome::Kind::acked, {});
  const Status done = file_.sync();
  if (done) return resolve_written(Outcome::Kind::acked, {});
  failed_ = true;
  resolve_written(Outcome::Kind::unknown, done.error());
}

void FileSink::resolve_written(Outcome::Kind kind, const Error& error) {
  ready_.reserve(ready_.size() + written_.size());
  for (const Token token : written_)
    ready_.push_back({.token = token, .kind = kind, .error = error});
  written_.clear();
  written_bytes_ = 0;
}

void FileSink::refuse(const Message& message, Error error) {
  failed_ = true;
  ready_.push_back(
      {.token = message.token, .kind = Outcome::Kind::blocked, .error = std::move(error)});
}

void FileSink::receive(std::vector<Outcome>& outcomes) {
  ack_if_durable();
  for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  ready_.clear();
}

/// Syncs what is written. Nothing else can be unfinished, because send() writes at once.
void FileSink::purge() {
  if (!written_.empty()) sync();
}

// ---- settings

namespace {

struct FileSettings {
  std::string path;
  std::string fsync{"batch"};
  std::string mode{"0640"};
};

/// Adds an error for what is wrong, and leaves the default in its place.
FileOptions parse_options(const FileSettings& settings, FieldErrors& errors) {
  FileOptions options{.path = settings.path};
  const char* const end = settings.mode.data() + settings.mode.size();
  mode_t mode = 0;
  const auto [stop, wrong] = std::from_chars(settings.mode.data(), end, mode, 8);
  const bool writable = wrong == std::errc() && stop == end && mode <= 0777U && (mode & 0200U) != 0;
  if (writable) {
    options.mode = mode;
  } else {
    errors.add({"file.mode", quote(settings.mode) + " is not a mode that lets the relay write",
                "write it like 0640"});
  }
  const std::string_view fsync = settings.fsync;
  bool known = fsync == "batch" || fsync == "never";
  if (fsync == "never") options.sync_after.reset();
  if (fsync.starts_with(kInterval)) {
    const auto interval = parse_duration(fsync.substr(kInterval.size()));
    known = interval && *interval <= std::chrono::seconds(10);
    if (known) options.sync_after = *interval;
  }
  if (!known) {
    errors.add({"file.fsync", quote(fsync) + " is not known",
                "batch, interval:DURATION (at most 10s, like interval:100ms) or never"});
  }
  return options;
}

void check_values(const FileSettings& settings, FieldErrors& errors) {
  (void)parse_options(settings, errors);
}

void check_directory(const FileSettings& settings, FieldErrors& errors) {
  const std::filesystem::path path(settings.path);
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return errors.add({"file.path", "there is no directory " + directory.string(),
                       "mkdir -p " + directory.string()});
  }
  if (std::filesystem::is_directory(path, error))
    return errors.add({"file.path", "is a directory", "name a file in it"});
  const std::filesystem::path& used = std::filesystem::exists(path, error) ? path : directory;
  if (::faccessat(AT_FDCWD, used.c_str(), W_OK, AT_EACCESS) == 0) return;
  errors.add({"file.path", used.string() + ": " + std::generic_category().message(errno),
              "run the relay as a user who may write there"});
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::make
Result<std::unique_ptr<Sink>> make(FileSettings settings) {
  OUTBOX_TRY(FileOptions options, read_valid(parse_options, settings));
  return std::make_unique<FileSink>(std::move(options));
}

/// Does not open the file, because a relay may hold its lock.
// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::inspect
Result<Inspection> inspect(FileSettings settings, const SubscriptionSpec&) {
  FieldErrors errors;
  const FileOptions options = parse_options(settings, errors);
  check_directory(settings, errors);
  OUTBOX_TRY(errors.status());
  Inspection found{.destination = settings.path,
                   .acked = "the line is on the disk",
                   .duplicates = "after a crash of the relay or a takeover",
                   .order = "of each key"};
  if (!options.sync_after) {
    found.acked = "the kernel has the line";
    found.weaknesses.push_back(
        {"fsync = \"never\"", "events that are not on the disk yet are lost when the machine fails",
         "leave out file.fsync"});
  }
  return found;
}

Result<ReadParts> read_back(const FileSettings& settings, const SubscriptionSpec&,
                            const TakeId& take) {
  OUTBOX_TRY(ReadPart file, read_delivered(settings.path, 0, take));
  return ReadParts{std::move(file)};
}

}  // namespace

SinkKind file_kind() {
  return make_kind<FileSettings>(
      {.name = "file",
       .help = "appends each event to a file as a line of JSON",
       .rows =
           {{"path", &FileSettings::path,
             Traits{.type = SettingType::path, .required = true, .exclusive = true},
             "The file. Its directory must exist; no other program may write to the file."},
            {"fsync", &FileSettings::fsync,
             "When lines are made durable; only then are they acked. batch: after each batch. interval:100ms: "
             "that much later, one sync for many batches. never: acked at once; a power failure or a crash of "
             "the kernel loses what was not on the disk yet."},
            {"mode", &FileSettings::mode,
             "Permissions of a file that the sink creates, in octal."}},
       .check = check_values,
       .check_here = check_directory,
       .make = make,
       .inspect = inspect,
       .read_back = read_back});
}

}  // namespace outbox::sink
