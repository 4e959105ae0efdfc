// Parses the text of a snapshot. What is read prints back to the same text.
#include <string>

#include "fuzz/fuzz.hpp"
#include "store/postgres/snapshot.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outbox;
  const auto parsed = store::postgres::parse_snapshot(fuzz::to_text(data, size));
  if (!parsed) {
    OUTBOX_PROPERTY(parsed.error().code == Errc::corrupt);
    return 0;
  }
  std::string text = std::to_string(parsed->xmin) + ":" + std::to_string(parsed->xmax) + ":";
  for (const auto xid : parsed->xip) text += (text.back() == ':' ? "" : ",") + std::to_string(xid);
  const auto again = store::postgres::parse_snapshot(text);
  OUTBOX_PROPERTY(again && again->xmin == parsed->xmin && again->xmax == parsed->xmax &&
                  again->xip == parsed->xip);
  return 0;
}
