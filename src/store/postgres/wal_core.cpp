#include "store/postgres/wal_core.hpp"

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"

namespace outbox::store::postgres {
namespace {

constexpr BackoffPolicy kPauses{.first = std::chrono::seconds(1),
                                .longest = std::chrono::seconds(30)};
/// A stream that lasted for this long ends a run of failures.
constexpr std::chrono::minutes kSound{1};
constexpr std::chrono::minutes kPatience{1};
constexpr std::chrono::minutes kMostPatience{5};

WalTrouble for_a_person(std::string reason, std::string hint) {
  return {.reason = std::move(reason), .hint = std::move(hint), .lasting = true};
}

}  // namespace

// ---- the stream

std::optional<std::uint32_t> WalReader::read(const WalMessage& message) {
  switch (message.kind) {
    case WalMessage::Kind::begin:
      xid_ = message.xid;
      inserted_ = false;
      break;
    case WalMessage::Kind::insert: inserted_ = true; break;
    case WalMessage::Kind::commit:
      if (std::exchange(inserted_, false)) return xid_;
      break;
    case WalMessage::Kind::truncate:  // what is gone wakes nobody
    case WalMessage::Kind::keepalive:
    case WalMessage::Kind::other: break;
  }
  return std::nullopt;
}

bool has_ended(const Snapshot& snapshot, std::uint32_t xid) {
  // The id is within 2^31 of the snapshot's end, as all ids are that the server can still name.
  const auto ahead = static_cast<std::int32_t>(xid - static_cast<std::uint32_t>(snapshot.xmax));
  if (ahead >= 0) return false;
  const std::uint64_t whole = snapshot.xmax - static_cast<std::uint64_t>(-std::int64_t{ahead});
  return !std::binary_search(snapshot.xip.begin(), snapshot.xip.end(), whole);
}

void UnseenCommits::add(std::uint32_t xid, WalTime now) {
  if (commits_.size() == kMost) commits_.pop_front();
  commits_.push_back({.xid = xid, .at = now});
}

bool UnseenCommits::all_in(const Snapshot& snapshot, WalTime now) {
  std::erase_if(commits_, [&](const Commit& commit) {
    return has_ended(snapshot, commit.xid) || now - commit.at >= kLongest;
  });
  return commits_.empty();
}

// ---- positions

void WalPosition::read(const WalMessage& message, WalTime now) {
  heard_at_ = now;
  received_ = std::max(received_, message.sent);
  wanted_ = wanted_ || message.wants_reply;
}

std::optional<WalPosition::Reply> WalPosition::due(WalTime now) {
  const bool ask = now - asked_at_ >= kAsk;
  const bool moved = received_ > confirmed_ && now - replied_at_ >= kConfirm;
  if (!wanted_ && !ask && !moved) return std::nullopt;
  wanted_ = false;
  confirmed_ = received_;
  replied_at_ = now;
  if (ask) asked_at_ = now;
  return Reply{.lsn = received_, .ask = ask};
}

WalTime WalPosition::next_at() const {
  const WalTime asks = std::min(asked_at_ + kAsk, heard_at_ + kSenderTimeout);
  return received_ > confirmed_ ? std::min(asks, replied_at_ + kConfirm) : asks;
}

// ---- what forbids a stream

std::optional<WalTrouble> find_trouble(const WalFacts& facts) {
  using Publication = WalFacts::Publication;
  if (facts.pooler)
    return for_a_person("behind a pooler",
                        "give relays a store.url with the address of the server itself");
  if (facts.standby)
    return for_a_person("the server is a standby",
                        "connect to the primary: add target_session_attrs=read-write to the URL");
  if (facts.wal_level != "logical")
    return for_a_person("wal_level is " + facts.wal_level,
                        "ALTER SYSTEM SET wal_level = logical, then restart the server");
  if (!facts.may_replicate)
    return for_a_person("no REPLICATION right",
                        "a superuser gives it to the login itself: ALTER ROLE ... REPLICATION");
  if (facts.publication == Publication::missing)
    return for_a_person("no publication", "outbox migrate --with-wal");
  if (facts.publication == Publication::wrong)
    return for_a_person("another publication",
                        "drop the one of this name, then outbox migrate --with-wal");
  if (facts.any_is_standby)
    return for_a_person(
        "synchronous standby '*'",
        "name the standbys in synchronous_standby_names: a relay, which keeps nothing, would count as one");
  if (facts.free_slots <= 0) return for_a_person("no free slot", "raise max_replication_slots");
  if (facts.free_senders <= 0) return for_a_person("no free sender", "raise max_wal_senders");
  return std::nullopt;
}

WalTrouble explain_failure(const Error& error) {
  if (error.origin == "pg:53400")
    return for_a_person("no free slot", "raise max_replication_slots");
  if (error.origin == "pg:53300") return for_a_person("no free sender", "raise max_wal_senders");
  if (error.code == Errc::permission_denied)
    return for_a_person("the login is refused",
                        "let it connect to this database (pg_hba.conf), with REPLICATION");
  return {.reason = "the stream is lost", .hint = error.text()};
}

// ---- attempts

std::chrono::nanoseconds WalAttempts::failed(WalTime now) {
  const auto since = std::exchange(since_, std::nullopt);
  if (since) waits_ = 0;
  if (since && now - *since >= kSound) failures_ = 0;
  return backoff(kPauses, ++failures_, seed_);
}

std::chrono::seconds WalAttempts::patience() const {
  return std::min(kPatience * (1 << std::min(waits_, 3)), kMostPatience);
}

}  // namespace outbox::store::postgres
