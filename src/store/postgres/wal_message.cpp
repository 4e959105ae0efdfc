#include "store/postgres/wal_message.hpp"

#include "pg/wire.hpp"

namespace outbox::store::postgres {
namespace {

/// Reads numbers from the front of a message. After a read beyond its end all reads fail.
class WalBytes {
 public:
  explicit WalBytes(std::string_view bytes) : left_(bytes) {}

  template <class T>
  [[nodiscard]] T take() noexcept {
    if (left_.size() < sizeof(T)) {
      left_ = {};
      failed_ = true;
    }
    if (failed_) return T{0};
    const T value = pg::wire::read<T>(left_.data());
    left_.remove_prefix(sizeof(T));
    return value;
  }
  [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool is_at_end() const noexcept { return !failed_ && left_.empty(); }

 private:
  std::string_view left_;
  bool failed_{false};
};

using Kind = WalMessage::Kind;

/// Reads a change, whose first byte is `type`. Returns false if it is broken.
bool read_change(char type, WalBytes& bytes, WalMessage& message) noexcept {
  switch (type) {
    case 'B':
      (void)bytes.take<Lsn>();           // the position of the commit
      (void)bytes.take<std::int64_t>();  // its time
      message.kind = Kind::begin;
      message.xid = bytes.take<std::uint32_t>();
      return bytes.is_at_end();
    case 'C':
      (void)bytes.take<std::uint8_t>();  // flags
      (void)bytes.take<Lsn>();           // where the commit begins
      message.kind = Kind::commit;
      message.sent = bytes.take<Lsn>();  // where it ends
      (void)bytes.take<std::int64_t>();
      return bytes.is_at_end();
    case 'I':
      (void)bytes.take<std::uint32_t>();  // the table
      message.kind = Kind::insert;
      return bytes.take<char>() == 'N' && bytes.left() >= sizeof(std::int16_t);
    case 'T': {
      const auto tables = bytes.take<std::uint32_t>();
      (void)bytes.take<std::uint8_t>();  // options
      message.kind = Kind::truncate;
      return !bytes.failed() && bytes.left() == std::uint64_t{tables} * sizeof(std::uint32_t);
    }
    default: return true;
  }
}

}  // namespace

std::optional<WalMessage> decode_wal_message(std::string_view message_bytes) noexcept {
  WalBytes bytes(message_bytes);
  WalMessage message;
  switch (bytes.take<char>()) {
    case 'k':
      message.kind = Kind::keepalive;
      message.sent = bytes.take<Lsn>();
      (void)bytes.take<std::int64_t>();
      message.wants_reply = bytes.take<std::uint8_t>() != 0;
      if (!bytes.is_at_end()) return std::nullopt;
      return message;
    case 'w': {
      message.sent = bytes.take<Lsn>();
      (void)bytes.take<Lsn>();  // the same again
      (void)bytes.take<std::int64_t>();
      const char type = bytes.take<char>();
      if (bytes.failed() || !read_change(type, bytes, message)) return std::nullopt;
      return message;
    }
    default: return std::nullopt;
  }
}

std::string encode_wal_reply(Lsn lsn, std::int64_t now_us, bool ask) {
  std::string bytes = "r";
  // What was written, flushed and applied here is the same.
  for (int i = 0; i < 3; ++i) pg::wire::append(bytes, lsn);
  pg::wire::append(bytes, now_us - pg::wire::kEpochUs);
  bytes.push_back(ask ? '\1' : '\0');
  return bytes;
}

}  // namespace outbox::store::postgres
