// Reads the files of removed events (archive.hpp) back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <string_view>

namespace outbox::store {

/// An event of an archive. Its payload is the one that was written, but for line breaks between the
/// tokens of JSON.
struct ArchivedEvent {
  std::int64_t seq{0};
  EventId id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  std::string payload{};
  std::string content_type{};
  std::string headers{"{}"};  ///< A JSON object.
  Timestamp created_at{};
  std::optional<Timestamp> occurred_at{};

  /// The view points into this object.
  [[nodiscard]] EventView view() const;
};

/// Reads one line, without its line feed. Members that this version does not know are ignored.
/// Pure.
[[nodiscard]] Result<ArchivedEvent> read_archive_line(std::string_view line);

/// Calls `visit` for each event in the files of a folder, in the order of their names; an error of
/// `visit` ends the reading. An event may occur twice. A line that cannot be read is an error that
/// names the file and the line.
[[nodiscard]] Status read_archive(const std::string& directory,
                                  const std::function<Status(const ArchivedEvent&)>& visit);

}  // namespace outbox::store
