// Reads streams of Redis as a consumer of a group. See docs/sources/redis.md.
//
// The server keeps for each group which entry it has given to which consumer and is not
// acknowledged yet: that entry is pending. Each source is a consumer with a name of its own.
//
// Order: from a stream come first the entries that are pending for this consumer, then those that
// it takes over, both by their ids, and then new ones. An entry is taken over when its consumer has
// given it back in close(), has ended on this machine, or has been silent for the idle limit. What
// was pending when the source was opened holds new entries of the stream up, until it has been
// acknowledged or taken over. So the consumers of a group that run one after the other keep the
// order, even if they are killed. Several at a time cannot: the server gives each of them whatever
// comes next, and what a killed one had comes after newer entries that the others have read.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"
#include "sink/hiredis/connection.hpp"
#include "sink/hiredis/purpose.hpp"
#include "sink/hiredis/settings.hpp"
#include "source/kind.hpp"
#include "source/redis/entry.hpp"
#include "source/source.hpp"

namespace outbox::source::redis {

/// The name of a consumer in its group. It begins with host:pid, and is never used again.
[[nodiscard]] std::string consumer_name(const ProcessIdentity& process, unsigned number);
/// The process in a name that consumer_name() has made; nullopt for other names.
[[nodiscard]] std::optional<ProcessIdentity> parse_process(std::string_view consumer);

/// What consumers connect for.
[[nodiscard]] const sink::hiredis::Purpose& purpose();

class RedisSource final : public Source {
 public:
  /// How long a consumer may hold an entry in silence before another one takes it over.
  static constexpr std::chrono::milliseconds kIdleLimit{30'000};

  RedisSource(sink::hiredis::ServerOptions options, ConsumerSpec spec,
              std::chrono::milliseconds idle_limit = kIdleLimit);
  ~RedisSource() override;

  [[nodiscard]] Status open() override;
  [[nodiscard]] Status receive(const Wanted& wanted, std::vector<Received>& into) override;
  [[nodiscard]] Status acknowledge(std::span<const Received> messages) override;
  [[nodiscard]] std::optional<std::int64_t> lag() override;
  void close() noexcept override;

 private:
  using Reply = sink::hiredis::Reply;
  using TimePoint = std::chrono::steady_clock::time_point;
  using Words = std::vector<std::string_view>;

  struct Stream {
    std::string name{};
    /// Whether entries may be pending for this consumer.
    bool has_pending{true};
    /// Where the search for entries to take over goes on; empty when it has reached the end.
    std::string search_from{};
    TimePoint search_at{};
    /// New entries wait while one up to this id is pending; empty if none of them has to.
    std::string held_up_to{};
    TimePoint held_until{};
    /// The highest id that this source has acknowledged, or that the group had when it joined.
    EntryId acknowledged{};
    /// How many entries were said to be removed before they were received.
    std::int64_t missed{0};
  };

  [[nodiscard]] Status join(Stream& stream);
  [[nodiscard]] Status look_for_missed(Stream& stream);
  [[nodiscard]] Status release_gone(Stream& stream);
  [[nodiscard]] Status give_back(Stream& stream, const std::string& consumer);
  [[nodiscard]] Status leave(Stream& stream);

  [[nodiscard]] Status stay_connected(std::chrono::milliseconds wait);
  [[nodiscard]] Status take_over(Stream& stream);
  [[nodiscard]] Status read_pending(Stream& stream, std::size_t most, std::vector<Received>& into);
  [[nodiscard]] Result<bool> is_held_up(Stream& stream);
  [[nodiscard]] Status read_new(std::vector<std::string_view> streams, const Wanted& wanted,
                                std::vector<Received>& into);
  /// Appends the entries. Returns the ids of those that are no longer in the stream.
  [[nodiscard]] Words take(const std::string& stream, const redisReply& entries,
                           std::vector<Received>& into);
  [[nodiscard]] std::size_t most_entries(const Wanted& wanted) const;
  void report_removed(const Stream& stream, const Words& ids) const;

  /// Sends a command and waits for its reply, which may be an error of the server. `blocks` is how
  /// long the server may take to find an entry.
  [[nodiscard]] Result<Reply> ask(const Words& command, std::chrono::milliseconds blocks = {});
  /// Sends all commands before it waits for their replies.
  [[nodiscard]] Result<std::vector<Reply>> ask_all(const std::vector<Words>& commands,
                                                   std::chrono::milliseconds blocks = {});
  /// Turns an error of the server into an error.
  [[nodiscard]] Result<Reply> succeed(const Words& command, std::chrono::milliseconds blocks = {});
  [[nodiscard]] Error describe(std::string_view reply, const std::string& what = {}) const;

  const sink::hiredis::ServerOptions options_;
  const ConsumerSpec spec_;
  const std::string group_;
  const std::string consumer_;
  const std::chrono::milliseconds idle_limit_;
  const std::string idle_limit_ms_;
  std::vector<Stream> streams_;
  std::unique_ptr<sink::hiredis::Connection> connection_;
  Error reason_{};     ///< Why there is no connection.
  bool broke_{false};  ///< Whether a connection of this consumer ever broke.
  /// How long a reply may take.
  std::chrono::milliseconds patience_{};
  /// When the server has given up to wait for an entry for this consumer, even if the connection
  /// broke meanwhile.
  TimePoint waits_until_{};
  std::size_t typical_bytes_;  ///< Of an entry.
  bool paused_{false};
};

[[nodiscard]] SourceKind kind();

}  // namespace outbox::source::redis
