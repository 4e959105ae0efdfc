// Everything the feed from the write-ahead log decides, without a server.
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "pg/wire.hpp"
#include "store/postgres/wal_core.hpp"

namespace outbox::store::postgres {
namespace {

using Kind = WalMessage::Kind;
using Publication = WalFacts::Publication;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WalTime kStart = WalTime(std::chrono::hours(1));

/// A message of the stream: numbers of the given sizes behind letters.
class Bytes {
 public:
  Bytes& letter(char c) {
    text_ += c;
    return *this;
  }
  template <class T>
  Bytes& number(T value) {
    pg::wire::append(text_, value);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The header of a change at this position.
Bytes change(Lsn at) { return Bytes().letter('w').number(at).number(at).number(std::int64_t{5}); }

std::string begin_of(std::uint32_t xid) {
  return change(0x10).letter('B').number(Lsn{0x20}).number(std::int64_t{7}).number(xid).text();
}

std::string insert() {
  return change(0x18)
      .letter('I')
      .number(std::int32_t{16400})
      .letter('N')
      .number(std::int16_t{1})
      .letter('t')
      .number(std::int32_t{1})
      .letter('7')
      .text();
}

std::string truncate(std::int32_t count, int listed) {
  Bytes bytes = change(0x18).letter('T').number(count).letter('\0');
  for (int i = 0; i < listed; ++i) bytes.number(std::int32_t{16400});
  return bytes.text();
}

std::string commit(Lsn end) {
  return change(end)
      .letter('C')
      .letter('\0')
      .number(Lsn{0x20})
      .number(end)
      .number(std::int64_t{7})
      .text();
}

std::string keepalive(Lsn at, bool wants_reply) {
  return Bytes()
      .letter('k')
      .number(at)
      .number(std::int64_t{5})
      .letter(wants_reply ? '\1' : '\0')
      .text();
}

// ---- messages

TEST(WalMessages, what_the_feed_needs_is_decoded) {
  const auto begun = decode_wal_message(begin_of(0xfffffff0U));
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->kind, Kind::begin);
  EXPECT_EQ(begun->xid, 0xfffffff0U);
  EXPECT_EQ(begun->sent, 0x10U);
  EXPECT_EQ(decode_wal_message(insert())->kind, Kind::insert);
  EXPECT_EQ(decode_wal_message(truncate(2, 2))->kind, Kind::truncate);
  const auto committed = decode_wal_message(commit(0x40));
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->kind, Kind::commit);
  EXPECT_EQ(committed->sent, 0x40U);
  const auto alive = decode_wal_message(keepalive(0x50, true));
  ASSERT_TRUE(alive);
  EXPECT_EQ(alive->kind, Kind::keepalive);
  EXPECT_EQ(alive->sent, 0x50U);
  EXPECT_TRUE(alive->wants_reply);
  EXPECT_FALSE(decode_wal_message(keepalive(0x50, false))->wants_reply);
}

TEST(WalMessages, what_a_server_sent_is_decoded) {
  // Begin and Commit as PostgreSQL 15 sent them.
  const std::string begun(
      "w\0\0\0\0\x01\x53\xe9\xa0\0\0\0\0\x01\x53\xe9\xa0\0\x03\x03\xc0\x14\x3d\x7a\x28"
      "B\0\0\0\0\x01\x53\xe9\xa0\0\x03\x03\xc0\x14\x3d\x7a\x28\0\0\x02\xd6",
      46);
  EXPECT_EQ(decode_wal_message(begun)->xid, 0x2d6U);
  const std::string committed(
      "w\0\0\0\0\x01\x53\xe9\xd0\0\0\0\0\x01\x53\xe9\xd0\0\x03\x03\xc0\x14\x3d\x7a\x28"
      "C\0\0\0\0\0\x01\x53\xe9\xa0\0\0\0\0\x01\x53\xe9\xd0\0\x03\x03\xc0\x14\x3d\x7a\x28",
      51);
  EXPECT_EQ(decode_wal_message(committed)->sent, 0x153e9d0U);
}

TEST(WalMessages, what_it_does_not_need_is_skipped) {
  for (const char type : {'R', 'Y', 'O', 'M', 'U', 'D', 'S', '?'})
    EXPECT_EQ(decode_wal_message(change(0).letter(type).text())->kind, Kind::other) << type;
}

TEST(WalMessages, a_part_of_a_message_is_none) {
  for (const std::string& whole :
       {begin_of(7), truncate(2, 2), commit(0x40), keepalive(0x50, true), insert().substr(0, 33)}) {
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(decode_wal_message(whole.substr(0, size))) << whole[0] << ' ' << size;
  }
  EXPECT_FALSE(decode_wal_message(begin_of(7) + "x")) << "and neither is more than one";
  EXPECT_FALSE(decode_wal_message(keepalive(1, false) + "x"));
  EXPECT_FALSE(decode_wal_message(truncate(3, 2)));
  EXPECT_FALSE(decode_wal_message(truncate(-1, 2)));
  EXPECT_FALSE(decode_wal_message("d"));
}

TEST(WalMessages, a_reply_says_the_same_three_times) {
  const std::string bytes = encode_wal_reply(0x1234, pg::wire::kEpochUs + 9, true);
  ASSERT_EQ(bytes.size(), 34U);
  EXPECT_EQ(bytes[0], 'r');
  for (const int at : {1, 9, 17}) EXPECT_EQ(pg::wire::read<Lsn>(bytes.data() + at), 0x1234U);
  EXPECT_EQ(pg::wire::read<std::int64_t>(bytes.data() + 25), 9);
  EXPECT_EQ(bytes[33], '\1');
}

// ---- commits

WalMessage of(Kind kind, std::uint32_t xid = 0) { return {.kind = kind, .xid = xid}; }

TEST(WalReading, only_commits_that_inserted_are_told) {
  WalReader reader;
  for (const Kind kind : {Kind::other, Kind::insert, Kind::truncate, Kind::keepalive}) {
    EXPECT_FALSE(reader.read(of(Kind::begin, 7)));
    EXPECT_FALSE(reader.read(of(kind)));
    const auto told = reader.read(of(Kind::commit));
    EXPECT_EQ(told.has_value(), kind == Kind::insert);
    EXPECT_EQ(told.value_or(7U), 7U);
  }
  EXPECT_FALSE(reader.read(of(Kind::commit))) << "nothing is told twice";
}

TEST(WalReading, a_snapshot_has_transactions_that_had_ended) {
  const Snapshot snapshot{.xmin = 100, .xmax = 110, .xip = {100, 105}};
  EXPECT_TRUE(has_ended(snapshot, 99));
  EXPECT_TRUE(has_ended(snapshot, 104));
  EXPECT_TRUE(has_ended(snapshot, 109));
  for (const std::uint32_t runs : {100U, 105U, 110U, 111U}) EXPECT_FALSE(has_ended(snapshot, runs));
}

TEST(WalReading, ids_go_round) {
  const std::uint64_t round = std::uint64_t{1} << 32U;
  const Snapshot snapshot{.xmin = 3 * round - 10, .xmax = 3 * round + 5, .xip = {3 * round - 10}};
  EXPECT_TRUE(has_ended(snapshot, 4));
  EXPECT_TRUE(has_ended(snapshot, 0xfffffff8U));
  EXPECT_FALSE(has_ended(snapshot, 0xfffffff6U));
  EXPECT_FALSE(has_ended(snapshot, 5));
  EXPECT_TRUE(has_ended({.xmin = 3, .xmax = 4, .xip = {}}, 3));
}

TEST(WalReading, commits_are_unseen_until_a_snapshot_has_them) {
  UnseenCommits unseen;
  EXPECT_TRUE(unseen.all_in({.xmin = 5, .xmax = 5, .xip = {}}, kStart));
  unseen.add(5, kStart);
  unseen.add(6, kStart);
  EXPECT_FALSE(unseen.all_in({.xmin = 5, .xmax = 7, .xip = {5}}, kStart));
  EXPECT_EQ(unseen.size(), 1U);
  EXPECT_TRUE(unseen.all_in({.xmin = 7, .xmax = 7, .xip = {}}, kStart));
}

TEST(WalReading, one_that_never_becomes_visible_is_left_to_the_idle_poll) {
  UnseenCommits unseen;
  unseen.add(9, kStart);
  const Snapshot before{.xmin = 9, .xmax = 9, .xip = {}};
  EXPECT_FALSE(unseen.all_in(before, kStart + milliseconds(999)));
  EXPECT_TRUE(unseen.all_in(before, kStart + seconds(1)));
}

TEST(WalReading, the_number_of_commits_is_bounded) {
  UnseenCommits unseen;
  for (std::uint32_t xid = 1; xid <= 10'000; ++xid) unseen.add(xid, kStart);
  EXPECT_EQ(unseen.size(), UnseenCommits::kMost);
}

// ---- positions

TEST(WalPositions, what_the_server_asks_for_is_answered_at_once) {
  WalPosition position(kStart);
  EXPECT_FALSE(position.due(kStart));
  position.read({.kind = Kind::keepalive, .sent = 50, .wants_reply = true}, kStart);
  const auto reply = position.due(kStart);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->lsn, 50U);
  EXPECT_FALSE(reply->ask);
  EXPECT_FALSE(position.due(kStart)) << "once";
}

TEST(WalPositions, a_position_that_moves_is_confirmed_once_a_second) {
  WalPosition position(kStart);
  position.read({.kind = Kind::insert, .sent = 50}, kStart);
  EXPECT_FALSE(position.due(kStart + milliseconds(999)));
  EXPECT_EQ(position.next_at(), kStart + seconds(1));
  EXPECT_EQ(position.due(kStart + seconds(1))->lsn, 50U);
  EXPECT_FALSE(position.due(kStart + seconds(2)));
  position.read({.kind = Kind::insert, .sent = 40}, kStart + seconds(2));
  EXPECT_FALSE(position.due(kStart + seconds(3))) << "it never goes back";
}

TEST(WalPositions, a_silent_server_is_asked_and_given_up) {
  WalPosition position(kStart);
  EXPECT_EQ(position.next_at(), kStart + seconds(5));
  EXPECT_TRUE(position.due(kStart + seconds(5))->ask);
  EXPECT_FALSE(position.is_silent(kStart + milliseconds(14'999)));
  EXPECT_TRUE(position.is_silent(kStart + seconds(15)));
  position.read({.kind = Kind::keepalive}, kStart + seconds(14));
  EXPECT_FALSE(position.is_silent(kStart + seconds(28)));
}

TEST(WalPositions, replies_come_well_within_the_servers_patience) {
  EXPECT_LE(3 * WalPosition::kAsk, WalPosition::kSenderTimeout);
}

// ---- what forbids a stream

WalFacts ready() {
  return {.wal_level = "logical",
          .login = "relay1",
          .may_replicate = true,
          .publication_name = "outbox_wal",
          .publication = Publication::good,
          .slots = 10,
          .free_slots = 1,
          .senders = 10,
          .free_senders = 1};
}

TEST(WalTroubles, each_missing_condition_is_named) {
  EXPECT_FALSE(find_trouble(ready()));
  const auto reason = [](auto&& spoil) {
    WalFacts facts = ready();
    spoil(facts);
    const auto trouble = find_trouble(facts);
    EXPECT_TRUE(trouble && trouble->lasting && !trouble->hint.empty());
    return trouble ? trouble->reason : "";
  };
  EXPECT_EQ(reason([](auto& facts) { facts.pooler = true; }), "behind a pooler");
  EXPECT_EQ(reason([](auto& facts) { facts.standby = true; }), "the server is a standby");
  EXPECT_EQ(reason([](auto& facts) { facts.wal_level = "replica"; }), "wal_level is replica");
  EXPECT_EQ(reason([](auto& facts) { facts.may_replicate = false; }), "no REPLICATION right");
  EXPECT_EQ(reason([](auto& facts) { facts.publication = Publication::missing; }),
            "no publication");
  EXPECT_EQ(reason([](auto& facts) { facts.publication = Publication::wrong; }),
            "another publication");
  EXPECT_EQ(reason([](auto& facts) { facts.any_is_standby = true; }), "synchronous standby '*'");
  EXPECT_EQ(reason([](auto& facts) { facts.free_slots = 0; }), "no free slot");
  EXPECT_EQ(reason([](auto& facts) { facts.free_senders = 0; }), "no free sender");
}

TEST(WalTroubles, a_failure_says_whether_a_person_has_to_act) {
  const auto failed = [](Errc code, std::string origin) {
    Error error;
    error.code = code;
    error.origin = std::move(origin);
    return explain_failure(error);
  };
  EXPECT_EQ(failed(Errc::unavailable, "pg:53400").reason, "no free slot");
  EXPECT_EQ(failed(Errc::unavailable, "pg:53300").reason, "no free sender");
  EXPECT_EQ(failed(Errc::permission_denied, "pg:08001").reason, "the login is refused");
  EXPECT_TRUE(failed(Errc::permission_denied, "pg:08001").lasting);
  EXPECT_EQ(failed(Errc::unavailable, "pg:57P01").reason, "the stream is lost");
  EXPECT_FALSE(failed(Errc::unavailable, "pg:57P01").lasting);
}

TEST(WalTroubles, a_reason_fits_into_the_name_of_a_session) {
  // 63 bytes: "outbox feed PID.TICKS poll: REASON"
  constexpr std::size_t kRoom = 63 - sizeof("outbox feed 4194304.9999999999 poll: ") + 1;
  for (const std::string reason :
       {"the server is a standby", "no REPLICATION right", "wal_level is minimal",
        "the server is not there", "waits for pid 4194304"})
    EXPECT_LE(reason.size(), kRoom) << reason;
}

// ---- attempts

TEST(WalPauses, grow_and_begin_anew_after_a_stream_that_lasted) {
  WalAttempts attempts(7);
  const auto near = [](std::chrono::nanoseconds pause, std::chrono::milliseconds expected) {
    return pause >= expected * 3 / 4 && pause <= expected * 5 / 4;
  };
  EXPECT_TRUE(near(attempts.failed(kStart), seconds(1)));
  EXPECT_TRUE(near(attempts.failed(kStart), seconds(2)));
  for (int i = 0; i < 20; ++i) (void)attempts.failed(kStart);
  EXPECT_TRUE(near(attempts.failed(kStart), seconds(30)));
  attempts.streaming(kStart);
  EXPECT_TRUE(near(attempts.failed(kStart + seconds(59)), seconds(30))) << "it did not last";
  attempts.streaming(kStart);
  EXPECT_TRUE(near(attempts.failed(kStart + seconds(60)), seconds(1)));
}

TEST(WalPauses, patience_grows_to_five_minutes) {
  WalAttempts attempts(7);
  for (const int minutes : {1, 2, 4, 5, 5}) {
    EXPECT_EQ(attempts.patience(), std::chrono::minutes(minutes));
    attempts.impatient();
    (void)attempts.failed(kStart);
  }
  attempts.streaming(kStart);
  (void)attempts.failed(kStart);
  EXPECT_EQ(attempts.patience(), std::chrono::minutes(1));
}

}  // namespace
}  // namespace outbox::store::postgres
