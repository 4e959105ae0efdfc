// Reads a row of the log in PostgreSQL's binary form, whose variable columns hold anything, and
// writes arrays as parameters.
#include <string>
#include <vector>

#include "event/headers.hpp"
#include "fuzz/fuzz.hpp"
#include "pg/param.hpp"
#include "pg/wire.hpp"
#include "store/postgres/event_row.hpp"

namespace {

using namespace outbox;
using namespace outbox::store::postgres;
namespace wire = outbox::pg::wire;
using outbox::pg::Param;

/// Takes the next bytes of the input for a column, with zeros behind them if the input is too
/// short.
std::string cell(std::string_view& input, std::size_t size) {
  std::string bytes(input.substr(0, size));
  input.remove_prefix(bytes.size());
  bytes.resize(size);
  return bytes;
}

Rows make_rows(std::string_view input) {
  std::vector<PGresAttDesc> columns(kFirstExtra);
  for (auto& column : columns) {
    column = {};
    column.name = const_cast<char*>("c");  // libpq copies it
    column.format = 1;
  }
  PGresult* const result = PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  OUTBOX_PROPERTY(PQsetResultAttrs(result, kFirstExtra, columns.data()) != 0);
  for (int column = 0; column < kFirstExtra; ++column) {
    const bool is_number = column == kSeq || column == kCreated || column == kOccurred;
    const std::size_t size = is_number          ? 8
                             : column == kId    ? 16
                             : column == kBytes ? 4
                                                : input.size() / 3;
    std::string bytes = cell(input, size);
    const bool null = column == kOccurred && !bytes.empty() && bytes[0] == 'n';
    OUTBOX_PROPERTY(PQsetvalue(result, 0, column, bytes.data(),
                               null ? -1 : static_cast<int>(bytes.size())) != 0);
  }
  return Rows(result);
}

/// The elements of a one-dimensional array of bigint.
std::vector<std::int64_t> list_numbers(const Param& array) {
  const char* at = array.data() + 12;
  const auto count = wire::read<std::int32_t>(at);
  OUTBOX_PROPERTY(array.size() == 20 + count * 12);
  std::vector<std::int64_t> numbers;
  for (at += 8; at < array.data() + array.size(); at += 12) {
    OUTBOX_PROPERTY(wire::read<std::int32_t>(at) == 8);
    numbers.push_back(wire::read<std::int64_t>(at + 4));
  }
  return numbers;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::to_text(data, size);
  const Rows rows = make_rows(input);
  EventView view = read_view(rows, 0);
  add_parts(view, rows.bytes(0, kPayload), rows.bytes(0, kHeaders));
  std::string first(input.substr(0, 8));
  first.resize(8);
  OUTBOX_PROPERTY(view.seq == wire::read<std::int64_t>(first.data()));
  event::Arena arena;
  std::vector<HeaderView> headers;
  event::read_headers(view.headers, arena, headers);

  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at + 8 <= size; at += 8)
    numbers.push_back(wire::read<std::int64_t>(input.data() + at));
  OUTBOX_PROPERTY(list_numbers(Param::int8_array(numbers)) == numbers);
  return 0;
}
