// Files of removed events, one JSON object per line.
//
//   {"seq":7,"id":"0199...","aggregate_type":"order","aggregate_id":"42",
//    "event_type":"OrderPlaced","payload":{"total":12.5},
//    "content_type":"application/json","headers":{},"created_at":"2026-01-05T08:09:12.000000Z"}
//
// The payload is verbatim if it is JSON (line breaks between tokens become spaces), or else a
// string if it is UTF-8, or else the member "payload_base64". "occurred_at" is there if the writer
// gave it.
#pragma once

#include <cstdio>
#include <memory>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>

namespace outbox::store {

/// Appends the line and its line feed. Pure.
void append_archive_line(std::string& out, const EventView& event);

/// The file has a temporary name until close(), and is removed if it is not closed. It is used by
/// one thread at a time.
class ArchiveFile {
 public:
  /// `name` is without an extension. A file of that name is replaced.
  [[nodiscard]] static Result<ArchiveFile> create(const std::string& directory,
                                                  const std::string& name);
  ArchiveFile(ArchiveFile&& other) noexcept = default;
  ArchiveFile(const ArchiveFile&) = delete;
  ArchiveFile& operator=(const ArchiveFile&) = delete;
  ArchiveFile& operator=(ArchiveFile&&) = delete;
  ~ArchiveFile();

  [[nodiscard]] Status add(const EventView& event);
  /// Gives the file its name. Afterwards it is complete and on the disk.
  [[nodiscard]] Status close();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
  };

  ArchiveFile(std::FILE* file, std::string directory, std::string path, std::string temporary)
      : file_(file),
        directory_(std::move(directory)),
        path_(std::move(path)),
        temporary_(std::move(temporary)) {}
  [[nodiscard]] tl::unexpected<Error> failed(const char* what) const;

  std::unique_ptr<std::FILE, Close> file_;  ///< Null after close().
  std::string directory_;
  std::string path_;
  std::string temporary_;
  std::string line_;
};

}  // namespace outbox::store
