// Decodes messages of a replication stream. Each read is bounds-checked, and what was decoded leads
// to decisions that keep their promises.
#include <algorithm>
#include <chrono>
#include <string>

#include "fuzz/fuzz.hpp"
#include "store/postgres/wal_core.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outbox::store::postgres;
  using Kind = WalMessage::Kind;
  const WalTime now(std::chrono::hours(1));
  WalReader reader;
  WalPosition position(now);
  UnseenCommits unseen;
  Lsn newest = 0;
  bool begun = false;
  // The input is a stream: messages, each behind its length.
  while (size > 0) {
    const std::size_t length = std::min<std::size_t>(data[0], size - 1);
    // A copy of its own, so that a read beyond its end is found.
    const std::string bytes(reinterpret_cast<const char*>(data) + 1, length);
    data += length + 1;
    size -= length + 1;
    const auto message = decode_wal_message(bytes);
    OUTBOX_PROPERTY(!message || !bytes.empty());
    if (!message) continue;
    OUTBOX_PROPERTY(message->kind != Kind::keepalive || bytes.size() == 18);
    OUTBOX_PROPERTY(message->kind != Kind::begin || bytes.size() == 46);
    OUTBOX_PROPERTY(message->kind != Kind::commit || bytes.size() == 51);
    begun = begun || message->kind == Kind::insert;
    position.read(*message, now);
    newest = std::max(newest, message->sent);
    const auto xid = reader.read(*message);
    OUTBOX_PROPERTY(!xid || (begun && message->kind == Kind::commit));
    if (xid) unseen.add(*xid, now);
    const auto reply = position.due(now);
    OUTBOX_PROPERTY(!reply || (reply->lsn == newest && message->wants_reply));
  }
  OUTBOX_PROPERTY(unseen.size() <= UnseenCommits::kMost);
  OUTBOX_PROPERTY(unseen.all_in({.xmin = 9, .xmax = 9, .xip = {}}, now + UnseenCommits::kLongest));
  return 0;
}
