#include "ops/id_compare.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"

namespace outbox::ops {
namespace {

constexpr std::size_t kExamples = 10;

tl::unexpected<Error> no_room() {
  return fail(
      Errc::unavailable, Remedy::retry_call,
      "the ids could not be kept in temporary files: " + std::system_category().message(errno),
      "32 bytes for each event and message in /tmp");
}

void note(std::vector<EventId>& some, const EventId& id) {
  if (some.size() < kExamples) some.push_back(id);
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

void IdCompare::add(const EventId& id, Side side) {
  const Record record{.id = id, .side = side};
  std::FILE* const file = files_[event::id_hash(id) % kFiles].get();
  failed_ = std::fwrite(&record, sizeof record, 1, file) != 1 || failed_;
}

Result<IdCompare::Found> IdCompare::compare() {
  Found found;
  if (failed_) return no_room();
  for (const File& file : files_) {
    OUTBOX_TRY(std::vector<Record> records, read(file.get()));
    compare(records, found);
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

void IdCompare::compare(std::vector<Record>& records, Found& found) {
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return std::tie(a.id.bytes, a.side) < std::tie(b.id.bytes, b.side);
  });
  for (auto first = records.begin(); first != records.end();) {
    std::array<std::int64_t, 4> of_side{};
    const EventId id = first->id;
    for (; first != records.end() && first->id == id; ++first)
      ++of_side[static_cast<std::size_t>(first->side)];
    const auto [settled, pending, aside, sink] = of_side;
    found.in_sink += sink;
    const std::int64_t known = settled + pending;
    if (known == 0 && sink > 0) {
      ++found.ghosts;
      note(found.some_ghosts, id);
      continue;
    }
    found.duplicates += std::max<std::int64_t>(0, sink - known);
    found.unsettled += std::clamp<std::int64_t>(sink - settled, 0, pending);
    const std::int64_t missing = std::max<std::int64_t>(0, settled - aside - sink);
    found.missing += missing;
    if (missing > 0) note(found.some_missing, id);
  }
}

}  // namespace outbox::ops
