#include "store/archive_read.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/json_scan.hpp"
#include "event/time_text.hpp"

namespace outbox::store {
namespace {

namespace fs = std::filesystem;

/// The members of a line before their meaning is known.
struct Line {
  ArchivedEvent event;
  std::string_view payload;
  bool base64{false};
  std::string wrong;  ///< The name of a member that is not what it should be.
};

bool is_string(std::string_view value) { return !value.empty() && value.front() == '"'; }

bool read_number(std::string_view value, std::int64_t& into) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  return error == std::errc{} && end == value.data() + value.size() && into > 0;
}

bool read_moment(std::string_view value, Timestamp& into) {
  const auto us = is_string(value) ? event::read_time(event::json_text(value)) : std::nullopt;
  into = event::timestamp(us.value_or(0));
  return us.has_value();
}

bool take_text(std::string_view value, std::string& into) {
  into = event::json_text(value);
  return is_string(value);
}

bool take(Line& line, const std::string& name, std::string_view value) {
  ArchivedEvent& event = line.event;
  if (name == "seq") return read_number(value, event.seq);
  if (name == "aggregate_type") return take_text(value, event.aggregate_type);
  if (name == "aggregate_id") return take_text(value, event.aggregate_id);
  if (name == "event_type") return take_text(value, event.event_type);
  if (name == "content_type") return take_text(value, event.content_type);
  if (name == "created_at") return read_moment(value, event.created_at);
  if (name == "occurred_at") return read_moment(value, event.occurred_at.emplace());
  if (name == "headers") event.headers = value;
  if (name == "payload" || name == "payload_base64") {
    line.payload = value;
    line.base64 = name != "payload";
  }
  if (name == "id") {
    const auto id = EventId::parse(event::json_text(value));
    if (id) event.id = *id;
    return id.has_value();
  }
  return true;
}

/// Returns false if the line has no valid payload.
bool read_payload(Line& line) {
  ArchivedEvent& event = line.event;
  if (line.payload.empty()) return false;
  if (line.base64) {
    auto bytes = event::read_base64(event::json_text(line.payload));
    if (bytes) event.payload = std::move(*bytes);
    return bytes.has_value();
  }
  const bool json = event::is_json_type(event.content_type);
  event.payload = json ? std::string(line.payload) : event::json_text(line.payload);
  return true;
}

tl::unexpected<Error> unreadable(const std::string& what) { return fail(Errc::corrupt, what); }

/// The files in the order of their names, which begin with the time.
Result<std::vector<std::string>> list_files(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> files;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".jsonl") files.push_back(entry->path().string());
  }
  if (error)
    return fail(Errc::not_found, "cannot read the archive " + directory + ": " + error.message(),
                "the folder that outbox prune --archive or relay.archive writes");
  std::sort(files.begin(), files.end());
  if (files.empty())
    return fail(Errc::not_found, "the archive " + directory + " has no .jsonl files",
                "the folder that outbox prune --archive or relay.archive writes");
  return files;
}

Status read_file(const std::string& path,
                 const std::function<Status(const ArchivedEvent&)>& visit) {
  std::ifstream file(path, std::ios::binary);
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    auto event = read_archive_line(line);
    if (!event)
      return fail(Errc::corrupt,
                  path + ", line " + std::to_string(number) + ": " + event.error().message,
                  "is it a file of outbox prune --archive, and whole?");
    OUTBOX_TRY(visit(*event));
  }
  if (file.eof()) return {};
  return fail(Errc::unavailable, "cannot read " + path, "is it a file that this user may read?");
}

}  // namespace

EventView ArchivedEvent::view() const {
  return {.seq = seq,
          .id = id,
          .aggregate_type = aggregate_type,
          .aggregate_id = aggregate_id,
          .event_type = event_type,
          .payload = payload,
          .content_type = content_type,
          .headers = headers,
          .created_at = created_at,
          .occurred_at = occurred_at};
}

Result<ArchivedEvent> read_archive_line(std::string_view text) {
  Line line;
  const auto fault =
      event::for_each_member(text, [&](event::JsonString name, std::string_view value) {
        const std::string member = event::decode_json(name);
        if (!take(line, member, value)) line.wrong = member;
      });
  if (fault) return unreadable(std::string("is not a JSON object: ") + fault->what);
  if (!line.wrong.empty()) return unreadable(line.wrong + " cannot be read");
  const ArchivedEvent& event = line.event;
  if (event.seq == 0 || event.aggregate_type.empty() || event.event_type.empty() ||
      event.created_at == Timestamp{} || event.id == EventId{})
    return unreadable("seq, id, aggregate_type, event_type or created_at is missing");
  if (!read_payload(line)) return unreadable("the payload cannot be read");
  return std::move(line.event);
}

Status read_archive(const std::string& directory,
                    const std::function<Status(const ArchivedEvent&)>& visit) {
  OUTBOX_TRY(const auto files, list_files(directory));
  for (const std::string& path : files) {
    OUTBOX_TRY(read_file(path, visit));
  }
  return {};
}

}  // namespace outbox::store
