// Reads a store's file that was damaged. Each group of five bytes of the input changes the file at
// one place. Each read returns an error or a value.
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/fuzz.hpp"
#include "store/store.hpp"
#include "support/failure.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace outbox;
using test::must;

std::string path() {
  static const test::TempDir folder;
  return folder.file("shop.db");
}

/// Makes a sound store in one file: the last connection empties the WAL.
std::string sound_file() {
  {
    const auto store = must(store::open_store({.url = "sqlite:" + path()}));
    (void)must(store->migrate());
    (void)must(must(store->catalog())
                   ->apply({.name = "orders", .sink = "null", .event_types = {"Order*"}}));
    std::vector<Event> events;
    for (int i = 0; i < 20; ++i) {
      events.push_back({.aggregate_type = "order",
                        .aggregate_id = std::to_string(i % 3),
                        .event_type = "OrderPlaced",
                        .payload = R"({"total":1})",
                        .headers = {{"tenant", "a"}}});
    }
    (void)must(must(store->writer())->write(events));
  }
  std::ifstream file(path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void damage(std::string& file, std::string_view input) {
  for (; input.size() >= 5; input.remove_prefix(5)) {
    std::size_t at = 0;
    for (int i = 0; i < 3; ++i)
      at = at << 8U | static_cast<unsigned char>(input[static_cast<std::size_t>(i)]);
    const auto length = 1 + (static_cast<unsigned char>(input[3]) & 15U);
    for (std::size_t i = 0; i < length; ++i) file[(at + i) % file.size()] = input[4];
    if (input[3] == 'c') file.resize(1 + at % file.size());  // cut short
  }
}

template <class T>
void check(const Result<T>& result) {
  OUTBOX_PROPERTY(result.has_value() || !result.error().message.empty());
}

void read_log(store::Store& store, std::int32_t subscription) {
  auto progress = store.progress();
  if (!progress) return check(progress);
  const auto strands = (*progress)->load(subscription, store::kAllLanes);
  check(strands);
  auto reader = store.reader();
  if (!reader || !strands || strands->empty()) return;
  const store::Cursor cursor = strands->front().cursor;
  if (const auto status = (*reader)->begin(std::span(&cursor, 1)); !status) return check(status);
  if (const auto status = (*reader)->start({.cursor = cursor}); !status) return check(status);
  check((*reader)->finish());
}

void read_all(store::Store& store) {
  check(store.check());
  auto catalog = store.catalog();
  if (!catalog) return check(catalog);
  const auto rows = (*catalog)->subscriptions();
  check(rows);
  check((*catalog)->overview(100));
  if (rows) {
    for (const auto& row : *rows) read_log(store, row.id);
  }
  if (auto events = store.events()) check((*events)->list({}, 100, true));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string sound = sound_file();
  std::string file = sound;
  damage(file, fuzz::to_text(data, size));
  std::ofstream(path(), std::ios::binary | std::ios::trunc) << file;
  auto store = store::open_store({.url = "sqlite:" + path()});
  OUTBOX_PROPERTY(store.has_value());
  read_all(**store);
  return 0;
}
