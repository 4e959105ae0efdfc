#include "store/postgres/snapshot.hpp"

#include <charconv>

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

/// Reads a number from the front of `text` and removes it.
bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_char(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Result<Snapshot> parse_snapshot(std::string_view text) {
  const std::string whole(text);
  const auto bad = [&] { return fail(Errc::corrupt, "not a snapshot: \"" + whole + "\""); };
  Snapshot snapshot;
  if (!take_number(text, snapshot.xmin) || !take_char(text, ':') ||
      !take_number(text, snapshot.xmax) || !take_char(text, ':')) {
    return bad();
  }
  while (!text.empty()) {
    std::uint64_t xid = 0;
    if (!snapshot.xip.empty() && !take_char(text, ',')) return bad();
    if (!take_number(text, xid)) return bad();
    snapshot.xip.push_back(xid);
  }
  return snapshot;
}

}  // namespace outbox::store::postgres
