#include "verify/id_compare.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"

namespace outbox::verify {
namespace {

/// `code` is the errno of the call that failed.
tl::unexpected<Error> no_room(int code = errno) {
  return fail(
      Errc::unavailable, Remedy::retry_call,
      "the ids could not be kept in temporary files: " + std::system_category().message(code),
      "24 bytes for each event and message in /tmp");
}

void note(std::vector<EventId>& some, const EventId& id) {
  if (some.size() < IdCompare::kExamples) some.push_back(id);
}

}  // namespace

Result<IdCompare> IdCompare::create() {
  IdCompare compare;
  for (File& file : compare.files_) {
    file.reset(std::tmpfile());
    if (file == nullptr) return no_room();
  }
  return compare;
}

void IdCompare::add(const EventId& id, Side side, std::int64_t created_s) {
  constexpr std::int64_t last = std::numeric_limits<std::uint32_t>::max();
  write({.id = id,
         .side = side,
         .detail = static_cast<std::uint32_t>(std::clamp<std::int64_t>(created_s, 0, last))});
}

void IdCompare::add_message(const EventId& id, std::uint32_t part) {
  parts_ = std::max(parts_, part + 1);
  write({.id = id, .side = Side::sink, .detail = part});
}

void IdCompare::write(const Record& record) {
  std::FILE* const file = files_[event::id_hash(record.id) % kFiles].get();
  if (std::fwrite(&record, sizeof record, 1, file) == 1 || write_error_ != 0) return;
  write_error_ = errno != 0 ? errno : EIO;
}

Result<IdCompare::Found> IdCompare::compare(std::int64_t young_s) {
  Found found;
  found.parts.resize(parts_);
  if (write_error_ != 0) return no_room(write_error_);
  for (const File& file : files_) {
    OUTBOX_TRY(std::vector<Record> records, read(file.get()));
    compare(records, young_s, found);
  }
  return found;
}

Result<std::vector<IdCompare::Record>> IdCompare::read(std::FILE* file) {
  if (std::fflush(file) != 0 || std::fseek(file, 0, SEEK_END) != 0) return no_room();
  const long bytes = std::ftell(file);
  if (bytes < 0) return no_room();
  std::rewind(file);
  std::vector<Record> records(static_cast<std::size_t>(bytes) / sizeof(Record));
  if (std::fread(records.data(), sizeof(Record), records.size(), file) != records.size())
    return no_room();
  return records;
}

/// Counts the messages of one id by their parts of the destination.
void IdCompare::count_parts(std::span<const Record> messages, bool known, Found& found) {
  for (const Record& message : messages) {
    Part& part = found.parts[message.detail];
    ++part.messages;
    if (known) ++part.known;
  }
  if (known || messages.empty()) return;
  std::set<std::uint32_t> parts;
  for (const Record& message : messages) parts.insert(message.detail);
  Ghosts& ghosts = found.ghosts_by_parts[{parts.begin(), parts.end()}];
  ++ghosts.count;
  note(ghosts.some, messages.front().id);
}

void IdCompare::compare(std::vector<Record>& records, std::int64_t young_s, Found& found) {
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return std::tie(a.id.bytes, a.side) < std::tie(b.id.bytes, b.side);
  });
  for (auto first = records.begin(); first != records.end();) {
    std::array<std::int64_t, 4> of_side{};
    std::int64_t young = 0;
    const EventId id = first->id;
    for (; first != records.end() && first->id == id; ++first) {
      ++of_side[static_cast<std::size_t>(first->side)];
      if (first->side == Side::settled && first->detail >= young_s) ++young;
    }
    const auto [settled, pending, aside, sink] = of_side;
    const std::int64_t known = settled + pending;
    found.in_sink += sink;
    // The messages are the last records of an id, since Side::sink is the greatest.
    count_parts({first - sink, first}, known > 0, found);
    if (known == 0 && sink > 0) {
      ++found.ghosts;
      note(found.some_ghosts, id);
      continue;
    }
    found.duplicates += std::max<std::int64_t>(0, sink - known);
    found.unsettled += std::clamp<std::int64_t>(sink - settled, 0, pending);
    const std::int64_t missing = std::max<std::int64_t>(0, settled - aside - sink);
    found.missing += missing;
    found.young_missing += std::min(missing, young);
    if (std::min(missing, young) > 0) note(found.some_missing, id);
  }
}

}  // namespace outbox::verify
