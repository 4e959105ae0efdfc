#include "source/redis/redis_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <map>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "sink/hiredis/error_map.hpp"
#include "sink/hiredis/session.hpp"

namespace outbox::source::redis {
namespace {

using namespace std::chrono_literals;
using sink::hiredis::parse_code;
using sink::hiredis::to_text;

/// The consumer that has what others have given back. It only holds entries, and reads none.
constexpr std::string_view kGivenBack = "given-back";
/// An idle time that is longer than any limit, so that whoever looks first takes the entry over.
constexpr std::string_view kLongIdle = "86400000";
constexpr std::string_view kFirst = "0-0";
/// How often each stream is searched for entries to take over.
constexpr std::chrono::milliseconds kSearchInterval{1000};
/// How many entries one command searches or moves.
constexpr std::string_view kAtOnce = "1000";
/// How long each step of close() may take.
constexpr std::chrono::milliseconds kClosePatience{2000};
/// The size of an entry before any was read.
constexpr std::size_t kTypicalBytes = std::size_t{32} << 10U;
/// How many ids a line of the log names.
constexpr std::size_t kMostShown = 10;

std::string join_ids(const std::vector<std::string_view>& ids) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ids.size(), kMostShown); ++i)
    text.append(i == 0 ? "" : " ").append(ids[i]);
  if (ids.size() > kMostShown) text += " ...";
  return text;
}

/// The texts of an array, or the first elements of its arrays.
std::vector<std::string_view> read_ids(const redisReply& array) {
  std::vector<std::string_view> ids;
  for (std::size_t i = 0; i < size(array); ++i) {
    const redisReply& one = element(array, i);
    ids.push_back(to_text(size(one) > 0 ? element(one, 0) : one));
  }
  return ids;
}

template <class Integer>
bool read_number(std::string_view text, Integer& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

unsigned next_number() {
  static std::atomic<unsigned> number{0};
  return ++number;
}

/// What XINFO GROUPS says of the group; a nil reply if the stream has no such group.
const redisReply& find_group(const redisReply& groups, std::string_view name) {
  for (std::size_t i = 0; i < size(groups); ++i) {
    if (to_text(find(element(groups, i), "name")) == name) return element(groups, i);
  }
  return element(groups, size(groups));
}

}  // namespace

const sink::hiredis::Purpose& purpose() {
  static const sink::hiredis::Purpose purpose{
      .sink = "redis",
      .attribute_prefix = {},
      .script = nullptr,
      .trial = {},
      .duplicates = {},
      .order = {},
      .weaknesses = {},
      .hints = {.memory = "maxmemory is reached: trim streams that were consumed (XTRIM), or raise "
                          "maxmemory",
                .rights = "the user of this consumer needs: +xgroup +xinfo +xreadgroup +xack "
                          "+xautoclaim +xclaim +xpending +xlen +ping +info +select ~STREAM",
                .type = "the key is there and is no stream: remove or rename it, or change what "
                        "this consumer reads",
                .commands = "the server lacks the command, or it was renamed or disabled: "
                            "consumers need Redis 6.2",
                .refused = ""},
      .eviction = {}};
  return purpose;
}

// ---- names of consumers

std::string consumer_name(const ProcessIdentity& process, unsigned number) {
  return fmt::format("{};{};{};{};{}", process_name(), process.boot_id, process.pid_ns,
                     process.started, number);
}

std::optional<ProcessIdentity> parse_process(std::string_view consumer) {
  std::array<std::string_view, 5> parts;
  for (std::string_view& part : parts) {
    part = consumer.substr(0, consumer.find(';'));
    consumer.remove_prefix(std::min(part.size() + 1, consumer.size()));
  }
  const std::size_t colon = parts[0].rfind(':');
  ProcessIdentity process{.boot_id = std::string(parts[1]), .pid_ns = std::string(parts[2])};
  if (colon == std::string_view::npos || !read_number(parts[0].substr(colon + 1), process.pid) ||
      !read_number(parts[3], process.started) || parts[4].empty())
    return std::nullopt;
  return process;
}

RedisSource::RedisSource(sink::hiredis::ServerOptions options, ConsumerSpec spec,
                         std::chrono::milliseconds idle_limit)
    : options_(std::move(options)),
      spec_(std::move(spec)),
      group_(spec_.group.empty() ? spec_.name : spec_.group),
      consumer_(consumer_name(this_process(), next_number())),
      idle_limit_(idle_limit),
      idle_limit_ms_(std::to_string(idle_limit.count())),
      typical_bytes_(kTypicalBytes) {
  for (const std::string& name : spec_.read) {
    if (std::none_of(streams_.begin(), streams_.end(),
                     [&](const Stream& stream) { return stream.name == name; }))
      streams_.push_back({.name = name});
  }
}

RedisSource::~RedisSource() { close(); }

// ---- opening and closing

Status RedisSource::open() {
  close();
  // The server may still be giving entries to the connection that broke; they would not be among
  // the pending ones yet.
  std::this_thread::sleep_until(waits_until_);
  patience_ = options_.deadline;
  OUTBOX_TRY(connection_, sink::hiredis::open_connection(options_, purpose()));
  for (Stream& stream : streams_) OUTBOX_TRY(join(stream));
  paused_ = false;
  return {};
}

/// Makes the stream and the group if they do not exist. A group that was removed while this source
/// read begins where it was, also with `latest`, which would leave messages out.
Status RedisSource::join(Stream& stream) {
  stream = {.name = stream.name, .acknowledged = stream.acknowledged, .missed = stream.missed};
  std::string from = "0";
  if (spec_.start == ConsumeFrom::latest)
    from = stream.acknowledged == EntryId{} ? "$" : stream.acknowledged.text();
  OUTBOX_TRY(const Reply made, ask({"XGROUP", "CREATE", stream.name, group_, from, "MKSTREAM"}));
  const bool failed = made->type == REDIS_REPLY_ERROR;
  if (failed && parse_code(to_text(*made)) != "BUSYGROUP")
    return fail(describe(to_text(*made), ", stream " + stream.name));
  OUTBOX_TRY(look_for_missed(stream));
  OUTBOX_TRY(release_gone(stream));
  OUTBOX_TRY(const Reply pending, succeed({"XPENDING", stream.name, group_}));
  stream.held_up_to = to_text(element(*pending, 2));
  stream.held_until = now_steady() + 2 * idle_limit_;
  return {};
}

/// Says that entries were trimmed before the group got them. Only Redis 7.0 and later count them.
Status RedisSource::look_for_missed(Stream& stream) {
  OUTBOX_TRY(const Reply groups, succeed({"XINFO", "GROUPS", stream.name}));
  OUTBOX_TRY(const Reply all, succeed({"XINFO", "STREAM", stream.name}));
  const redisReply& group = find_group(*groups, group_);
  const std::string_view delivered = to_text(find(group, "last-delivered-id"));
  if (stream.acknowledged == EntryId{}) stream.acknowledged = EntryId::parse(delivered);
  const auto added = number(find(*all, "entries-added"));
  const auto read = number(find(group, "entries-read"));
  const auto length = number(find(*all, "length"));
  if (!added || !read || !length || delivered == to_text(find(*all, "last-generated-id")))
    return {};
  const std::int64_t missed = *added - *read - *length;
  if (missed <= stream.missed) return {};
  log::error("messages were removed from the stream before they were received",
             {{"consumer", spec_.name},
              {"stream", stream.name},
              {"after", delivered},
              {"count", missed - stream.missed}});
  stream.missed = missed;
  return {};
}

/// Gives back for the consumers of processes that have ended on this machine. Their names are
/// removed when the server certainly waits no longer for an entry for them, because the removal of
/// a name makes the server forget what is pending for it.
Status RedisSource::release_gone(Stream& stream) {
  const ProcessIdentity self = this_process();
  OUTBOX_TRY(const Reply consumers, succeed({"XINFO", "CONSUMERS", stream.name, group_}));
  for (std::size_t i = 0; i < size(*consumers); ++i) {
    const redisReply& one = element(*consumers, i);
    const std::string name(to_text(find(one, "name")));
    const auto process = parse_process(name);
    if (!process || !is_gone(*process, self)) continue;
    if (number(find(one, "pending")).value_or(1) > 0) {
      OUTBOX_TRY(give_back(stream, name));
    } else if (number(find(one, "idle")).value_or(0) > idle_limit_.count()) {
      OUTBOX_TRY(succeed({"XGROUP", "DELCONSUMER", stream.name, group_, name}));
    }
  }
  return {};
}

/// Moves all that is pending for the consumer to where the next search finds it.
Status RedisSource::give_back(Stream& stream, const std::string& consumer) {
  while (true) {
    OUTBOX_TRY(const Reply pending,
               succeed({"XPENDING", stream.name, group_, "-", "+", kAtOnce, consumer}));
    const Words ids = read_ids(*pending);
    if (ids.empty()) return {};
    Words command{"XCLAIM", stream.name, group_, kGivenBack, "0"};
    command.insert(command.end(), ids.begin(), ids.end());
    command.insert(command.end(), {"IDLE", kLongIdle, "JUSTID"});
    OUTBOX_TRY(const Reply moved, succeed(command));
    // Redis 7.0 forgets those that are no longer in the stream.
    const Words left = read_ids(*moved);
    Words removed;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(removed), [&](std::string_view id) {
      return std::find(left.begin(), left.end(), id) == left.end();
    });
    report_removed(stream, removed);
  }
}

/// The name is removed only when nothing is pending for it, or the server would forget that. After
/// a connection broke, a command on its way may still make an entry pending.
Status RedisSource::leave(Stream& stream) {
  OUTBOX_TRY(give_back(stream, consumer_));
  if (broke_) return {};
  OUTBOX_TRY(succeed({"XGROUP", "DELCONSUMER", stream.name, group_, consumer_}));
  return {};
}

/// Without a connection the others wait for the idle limit.
void RedisSource::close() noexcept {
  patience_ = std::min(options_.deadline, kClosePatience);
  for (Stream& stream : streams_) {
    if (connection_) (void)leave(stream);
  }
  connection_.reset();
  reason_ = {.code = Errc::unavailable,
             .remedy = Remedy::reconnect,
             .message = "redis: the source is not open",
             .hint = {},
             .origin = {}};
}

// ---- messages

Status RedisSource::receive(const Wanted& wanted, std::vector<Received>& into) {
  if (wanted.messages == 0) return stay_connected(wanted.wait);
  // In a pause a stream may become longer than its limit.
  if (std::exchange(paused_, false)) {
    for (Stream& stream : streams_) OUTBOX_TRY(look_for_missed(stream));
  }
  // Each call begins with another stream, so that none waits for the others.
  if (streams_.size() > 1) std::rotate(streams_.begin(), streams_.begin() + 1, streams_.end());
  const std::size_t before = into.size();
  std::vector<std::string_view> ready;
  for (Stream& stream : streams_) {
    OUTBOX_TRY(take_over(stream));
    OUTBOX_TRY(read_pending(stream, most_entries(wanted), into));
    if (into.size() > before) return {};
    OUTBOX_TRY(const bool held_up, is_held_up(stream));
    if (!held_up) ready.push_back(stream.name);
  }
  if (!ready.empty()) return read_new(std::move(ready), wanted, into);
  std::this_thread::sleep_for(wanted.wait);
  return {};
}

Status RedisSource::stay_connected(std::chrono::milliseconds wait) {
  paused_ = true;
  OUTBOX_TRY(ask({"PING"}));
  std::this_thread::sleep_for(wait);
  return {};
}

/// Makes entries pending for this consumer that others have left. Whether they are still in the
/// stream shows when they are read. What is pending is read before more is taken over, except when
/// the source has just joined: then both are read in the order of their ids.
Status RedisSource::take_over(Stream& stream) {
  if (stream.has_pending && stream.search_at != TimePoint()) return {};
  if (stream.search_from.empty()) {
    if (now_steady() < stream.search_at) return {};
    stream.search_from = kFirst;
    stream.search_at = now_steady() + std::min(kSearchInterval, idle_limit_);
  }
  while (!stream.search_from.empty()) {
    OUTBOX_TRY(const Reply found,
               succeed({"XAUTOCLAIM", stream.name, group_, consumer_, idle_limit_ms_,
                        stream.search_from, "COUNT", kAtOnce, "JUSTID"}));
    stream.search_from = to_text(element(*found, 0));
    if (stream.search_from == kFirst) stream.search_from.clear();
    report_removed(stream, read_ids(element(*found, 2)));  // Redis 7.0 has acknowledged them.
    const std::size_t count = size(element(*found, 1));
    if (count == 0) continue;
    stream.has_pending = true;
    log::info("the consumer takes over what was received and not acknowledged",
              {{"consumer", spec_.name}, {"stream", stream.name}, {"count", count}});
    break;
  }
  return {};
}

Status RedisSource::read_pending(Stream& stream, std::size_t most, std::vector<Received>& into) {
  const std::size_t before = into.size();
  while (stream.has_pending && into.size() == before) {
    OUTBOX_TRY(const Reply reply, succeed({"XREADGROUP", "GROUP", group_, consumer_, "COUNT",
                                           std::to_string(most), "STREAMS", stream.name, "0"}));
    const redisReply& entries = element(element(*reply, 0), 1);
    stream.has_pending = size(entries) > 0;
    const Words removed = take(stream.name, entries, into);
    if (removed.empty()) continue;
    report_removed(stream, removed);
    Words command{"XACK", stream.name, group_};
    command.insert(command.end(), removed.begin(), removed.end());
    OUTBOX_TRY(succeed(command));
  }
  return {};
}

/// Whether entries are pending for other consumers that this one has to hand over first, should
/// those not acknowledge them.
Result<bool> RedisSource::is_held_up(Stream& stream) {
  if (!stream.search_from.empty()) return true;
  if (stream.held_up_to.empty()) return false;
  if (now_steady() < stream.held_until) {
    OUTBOX_TRY(const Reply pending,
               succeed({"XPENDING", stream.name, group_, "-", stream.held_up_to, "1"}));
    if (size(*pending) > 0) return true;
  }
  stream.held_up_to.clear();
  return false;
}

Status RedisSource::read_new(std::vector<std::string_view> streams, const Wanted& wanted,
                             std::vector<Received>& into) {
  const std::size_t most = most_entries(wanted);
  if (streams.size() > most) streams.resize(most);
  const std::string count = std::to_string(most / streams.size());
  const auto wait = std::max(wanted.wait, std::chrono::milliseconds(1));  // 0 waits forever.
  const std::string block = std::to_string(wait.count());
  Words command{"XREADGROUP", "GROUP", group_, consumer_, "COUNT",
                count,        "BLOCK", block,  "STREAMS"};
  command.insert(command.end(), streams.begin(), streams.end());
  command.insert(command.end(), streams.size(), ">");
  waits_until_ = now_steady() + wait;
  OUTBOX_TRY(const Reply reply, succeed(command, wait));
  waits_until_ = {};
  for (std::size_t i = 0; i < size(*reply); ++i) {
    const redisReply& one = element(*reply, i);
    (void)take(std::string(to_text(element(one, 0))), element(one, 1), into);
  }
  return {};
}

RedisSource::Words RedisSource::take(const std::string& stream, const redisReply& entries,
                                     std::vector<Received>& into) {
  Words removed;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < size(entries); ++i) {
    const std::string_view id = to_text(element(element(entries, i), 0));
    const redisReply& fields = element(element(entries, i), 1);
    if (fields.type == REDIS_REPLY_NIL) {
      removed.push_back(id);
      continue;
    }
    into.push_back(read_entry(stream, id, fields));
    bytes += into.back().payload.size();
  }
  const std::size_t taken = size(entries) - removed.size();
  if (taken > 0) typical_bytes_ = std::max(bytes / taken + 1, typical_bytes_ / 2);
  return removed;
}

/// The server counts entries and not their bytes, so their size is that of the last ones.
std::size_t RedisSource::most_entries(const Wanted& wanted) const {
  return std::clamp<std::size_t>(wanted.bytes / typical_bytes_, 1, wanted.messages);
}

void RedisSource::report_removed(const Stream& stream, const Words& ids) const {
  if (ids.empty()) return;
  log::error("messages were removed from the stream before they were received",
             {{"consumer", spec_.name},
              {"stream", stream.name},
              {"count", ids.size()},
              {"ids", join_ids(ids)}});
}

Status RedisSource::acknowledge(std::span<const Received> messages) {
  std::map<std::string_view, Words> ids;
  for (const Received& message : messages) ids[message.channel].push_back(entry_id(message));
  std::vector<Words> commands;
  for (const auto& [stream, of_stream] : ids) {
    Words& command = commands.emplace_back(Words{"XACK", stream, group_});
    command.insert(command.end(), of_stream.begin(), of_stream.end());
  }
  OUTBOX_TRY(const auto replies, ask_all(commands));
  for (const Reply& reply : replies) {
    if (reply->type == REDIS_REPLY_ERROR) return fail(describe(to_text(*reply)));
  }
  for (Stream& stream : streams_) {
    const auto found = ids.find(stream.name);
    if (found == ids.end()) continue;
    for (const std::string_view id : found->second)
      stream.acknowledged = std::max(stream.acknowledged, EntryId::parse(id));
  }
  return {};
}

/// Before Redis 7.2 the server counts entries that were trimmed before the group got them, so that
/// its number may be larger than the stream.
std::optional<std::int64_t> RedisSource::lag() {
  std::int64_t all = 0;
  for (const Stream& stream : streams_) {
    const auto replies = ask_all({{"XINFO", "GROUPS", stream.name}, {"XLEN", stream.name}});
    if (!replies) return std::nullopt;
    const redisReply& group = find_group(*replies->at(0), group_);
    const auto unread = number(find(group, "lag"));
    const auto pending = number(find(group, "pending"));
    const auto length = number(*replies->at(1));
    if (!unread || !pending || !length) return std::nullopt;
    all += std::min(*unread, *length) + *pending;
  }
  return all;
}

// ---- commands

Result<RedisSource::Reply> RedisSource::ask(const Words& command,
                                            std::chrono::milliseconds blocks) {
  OUTBOX_TRY(auto replies, ask_all({command}, blocks));
  return std::move(replies.front());
}

Result<std::vector<RedisSource::Reply>> RedisSource::ask_all(const std::vector<Words>& commands,
                                                             std::chrono::milliseconds blocks) {
  if (!connection_) return fail(reason_);
  for (const Words& command : commands) connection_->append(command);
  const auto until = now_steady() + blocks + patience_;
  std::vector<Reply> replies;
  while (replies.size() < commands.size()) {
    auto reply = connection_->answer(until, "deadline");
    if (!reply) {
      connection_.reset();
      broke_ = true;
      reason_ = reply.error();
      return pass(reply);
    }
    replies.push_back(std::move(*reply));
  }
  return replies;
}

Result<RedisSource::Reply> RedisSource::succeed(const Words& command,
                                                std::chrono::milliseconds blocks) {
  OUTBOX_TRY(Reply reply, ask(command, blocks));
  if (reply->type == REDIS_REPLY_ERROR) return fail(describe(to_text(*reply)));
  return reply;
}

Error RedisSource::describe(std::string_view reply, const std::string& what) const {
  Error error = sink::hiredis::describe(reply, connection_->address() + what, purpose());
  const std::string_view code = parse_code(reply);
  const bool gone = code == "UNBLOCKED" && reply.find("no longer exists") != std::string_view::npos;
  if (code == "NOGROUP" || gone) {
    error.code = Errc::not_found;
    error.remedy = Remedy::reconnect;
    error.hint =
        "the stream or its group was removed: the consumer makes both again; what it then receives "
        "again the inbox knows";
  }
  return error;
}

}  // namespace outbox::source::redis
