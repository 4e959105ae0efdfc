#include "sink/file/file_sink.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "sink/json_line.hpp"

namespace outbox::sink {
namespace {

/// Lines are written in pieces of about this size, so that a batch of large events needs no memory to match.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;
/// With so much waiting, the sync is not put off any longer: the relay's window must not fill up.
constexpr std::size_t kMostUnsynced = 5000;
constexpr std::size_t kMostUnsyncedBytes = std::size_t{4} << 20U;

constexpr std::string_view kInterval = "interval:";

}  // namespace

FileSink::FileSink(FileOptions options, const Disk& disk)
    : options_(std::move(options)), file_(options_.path, options_.mode, kLineStart, disk) {}

Status FileSink::open() {
  if (file_.is_open() && !failed_) return {};
  if (Status done = file_.open(); !done) return done;
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
  ack_what_is_durable();
  return taken;
}

/// Returns how many messages it took; the last of them may be the one that failed.
std::size_t FileSink::write_some(std::span<const Message> messages) {
  lines_.clear();
  ends_.clear();
  for (const Message& message : messages) {
    append_json_line(lines_, message);
    ends_.push_back(lines_.size());
    if (lines_.size() >= kPieceBytes) break;
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
  if (Status done = file_.open(); !done) return done;
  log::info("file was rotated, a new one is open", {{"file", options_.path}});
  return {};
}

// ---- outcomes

void FileSink::ack_what_is_durable() {
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
  ack_what_is_durable();
  for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  ready_.clear();
}

/// What is written needs no more than the sync that was put off.
void FileSink::purge() {
  if (!written_.empty()) sync();
}

// ---- as the registry knows it

namespace {

Result<FileOptions> read_options(const Settings& settings) {
  FileOptions options{.path = settings.text("path"), .mode = 0, .sync_after = {}};
  const std::string& mode = settings.text("mode");
  unsigned bits = 0;
  const auto [end, wrong] = std::from_chars(mode.data(), mode.data() + mode.size(), bits, 8);
  if (wrong != std::errc() || end != mode.data() + mode.size() || bits > 0777U ||
      (bits & 0200U) == 0) {
    return fail(Errc::invalid_argument,
                "file.mode: \"" + mode + "\" is no mode that lets the relay write",
                "write it like 0640");
  }
  options.mode = static_cast<mode_t>(bits);
  const std::string& fsync = settings.text("fsync");
  if (fsync == "batch") {
    options.sync_after = std::chrono::nanoseconds(0);
  } else if (fsync.starts_with(kInterval)) {
    const auto interval = parse_duration(std::string_view(fsync).substr(kInterval.size()));
    if (interval) options.sync_after = *interval;
  }
  const bool too_long =
      options.sync_after.value_or(std::chrono::nanoseconds(0)) > std::chrono::seconds(10);
  if ((!options.sync_after && fsync != "never") || too_long) {
    return fail(Errc::invalid_argument, "file.fsync: \"" + fsync + "\" is not known",
                "batch, interval:DURATION (at most 10s, like interval:100ms) or never");
  }
  return options;
}

}  // namespace

Kind file_kind() {
  return {
      .info =
          {.name = "file",
           .help = "appends each event to a file as a line of JSON",
           .settings =
               {{.name = "path",
                 .type = "path",
                 .default_value = "",
                 .required = true,
                 .help = "the file; its directory must exist, and no other writer may use it"},
                {.name = "fsync",
                 .type = "string",
                 .default_value = "batch",
                 .required = false,
                 .help =
                     "when lines are made durable, and only then acked: batch, interval:100ms (waits so "
                     "long to sync many batches at once), or never (acked at once; a power failure or "
                     "a crash of the kernel loses what was not on the disk yet)"},
                {.name = "mode",
                 .type = "string",
                 .default_value = "0640",
                 .required = false,
                 .help = "permissions of a file that the sink creates, in octal"}}},
      .check = [](const Settings& settings) -> Status {
        auto options = read_options(settings);
        return options ? Status() : Status(tl::unexpected(options.error()));
      },
      .make = [](const Settings& settings) -> Result<std::unique_ptr<Sink>> {
        auto options = read_options(settings);
        if (!options) return pass(options);
        return std::make_unique<FileSink>(std::move(*options));
      }};
}

}  // namespace outbox::sink
