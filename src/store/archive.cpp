#include "store/archive.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"

namespace outbox::store {
namespace {

void append_text(std::string& out, std::string_view member, std::string_view text) {
  out.append(member);
  event::append_json_string(out, text);
}

/// In valid JSON line breaks are only between tokens, where a space means the same.
void append_json(std::string& out, std::string_view member, std::string_view json) {
  out.append(member);
  for (const char c : json) out.push_back(c == '\n' || c == '\r' ? ' ' : c);
}

void append_payload(std::string& out, const EventView& event) {
  if (event::is_json_type(event.content_type) && event::is_json(event.payload)) {
    append_json(out, ",\"payload\":", event.payload);
  } else if (event::is_utf8(event.payload)) {
    append_text(out, ",\"payload\":", event.payload);
  } else {
    out.append(",\"payload_base64\":\"");
    const std::size_t from = out.size();
    out.resize(from + event::base64_length(event.payload.size()));
    event::write_base64(event.payload, out.data() + from);
    out.push_back('"');
  }
}

/// Rows written by plain SQL may hold anything; what is not a JSON object counts as no headers, as
/// it did when it was delivered.
std::string_view usable_headers(std::string_view headers) {
  const auto nothing = [](event::JsonString, std::string_view) {};
  return event::for_each_member(headers, nothing) ? std::string_view("{}") : headers;
}

/// A file or folder is on the disk only after it was synced itself.
bool sync_path(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool synced = fsync(fd) == 0;
  const int error = errno;
  (void)close(fd);
  errno = error;
  return synced;
}

}  // namespace

void append_archive_line(std::string& out, const EventView& event) {
  out.append("{\"seq\":").append(std::to_string(event.seq));
  append_text(out, ",\"id\":", event.id.str());
  append_text(out, ",\"aggregate_type\":", event.aggregate_type);
  append_text(out, ",\"aggregate_id\":", event.aggregate_id);
  append_text(out, ",\"event_type\":", event.event_type);
  append_payload(out, event);
  append_text(out, ",\"content_type\":", event.content_type);
  append_json(out, ",\"headers\":", usable_headers(event.headers));
  append_text(out, ",\"created_at\":", event::time_text(event::to_us(event.created_at)));
  if (event.occurred_at)
    append_text(out, ",\"occurred_at\":", event::time_text(event::to_us(*event.occurred_at)));
  out.append("}\n");
}

Result<ArchiveFile> ArchiveFile::create(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name + ".jsonl";
  const std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  std::FILE* const file = std::fopen(temporary.c_str(), "we");
  ArchiveFile made(file, directory, path, temporary);
  if (file == nullptr) return made.failed("create");
  return made;
}

ArchiveFile::~ArchiveFile() {
  if (!file_) return;
  file_.reset();
  (void)unlink(temporary_.c_str());
}

Status ArchiveFile::add(const EventView& event) {
  line_.clear();
  append_archive_line(line_, event);
  if (std::fwrite(line_.data(), 1, line_.size(), file_.get()) != line_.size())
    return failed("write");
  return {};
}

Status ArchiveFile::close() {
  if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0) return failed("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("rename");
  file_.reset();
  return sync_path(directory_) ? Status{} : failed("sync the folder of");
}

tl::unexpected<Error> ArchiveFile::failed(const char* what) const {
  const std::string reason = std::strerror(errno);
  const bool may_pass = errno == ENOSPC || errno == EDQUOT || errno == EIO;
  return fail(Errc::unavailable, may_pass ? Remedy::retry_call : Remedy::fix,
              std::string("cannot ") + what + " the archive " + path_ + ": " + reason +
                  "; its events stay in the log",
              "relay.archive or --archive must be a folder that this process may write to, with "
              "space for the events");
}

}  // namespace outbox::store
