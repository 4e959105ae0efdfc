#include "store/postgres/wal_feed.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"
#include "store/wait.hpp"

namespace outbox::store::postgres {
namespace {

/// A commit just before the first position of a stream is visible by then.
constexpr std::chrono::milliseconds kSettling{100};
/// How often a stream is asked whether its publication is still there.
constexpr std::chrono::seconds kAskEvery{10};
constexpr std::chrono::seconds kAnswer{5};
constexpr int kMostAtOnce = 1000;

std::string slot_name() {
  std::string name = "outbox_wal_" + EventId::generate().str();
  std::erase(name, '-');
  return name;
}

Query on_slot(const Query& query, const std::string& slot) {
  Query made = query;
  replace_all(made.sql, "{slot}", slot);
  return made;
}

std::string to_session_name(const FeedState& state) {
  return state.streams ? "wal" : "poll: " + state.trouble;
}

/// The feeds of this process.
struct ProcessFeeds {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<WalFeed>> feeds OUTBOX_GUARDED_BY(mutex);
};

ProcessFeeds& process_feeds() {
  static ProcessFeeds all;
  return all;
}

}  // namespace

std::string feed_session_name() {
  const ProcessIdentity self = this_process();
  return "outbox feed " + std::to_string(self.pid) + "." + std::to_string(self.started) + " ";
}

Result<std::shared_ptr<WalFeed>> WalFeed::of_process(const StoreOptions& options, Feed feed) {
  ProcessFeeds& all = process_feeds();
  const MutexLock lock(all.mutex);
  std::weak_ptr<WalFeed>& known = all.feeds[options.schema + " " + options.url];
  if (auto running = known.lock()) return running;
  OUTBOX_TRY(EventFd interrupted, EventFd::create());
  const std::shared_ptr<WalFeed> made(new WalFeed(options, feed, std::move(interrupted)));
  made->thread_ =
      start_thread("ob-wal", [self = made.get()](const auto& stop) { self->run(stop); });
  known = made;
  return made;
}

WalFeed::WalFeed(StoreOptions options, Feed feed, EventFd interrupted)
    : options_(std::move(options)),
      wanted_(feed == Feed::wal),
      queries_(std::make_shared<const Queries>(options_.schema)),
      session_(feed_session_name()),
      interrupted_(std::move(interrupted)),
      attempts_(std::hash<std::string>{}(EventId::generate().str())),
      state_{.streams = false, .trouble = "connecting"} {}

WalFeed::~WalFeed() {
  thread_.request_stop();
  interrupted_.signal();
}

// ---- any thread

WalFeed::News WalFeed::news() const {
  const MutexLock lock(mutex_);
  const bool counts = up_at_ && now_steady() >= *up_at_ + kSettling;
  return {.stream = counts ? streams_ : 0, .commits = commits_};
}

std::uint64_t WalFeed::take_commits(std::uint64_t from, UnseenCommits& into) const {
  const MutexLock lock(mutex_);
  const auto missing = std::min<std::uint64_t>(commits_ - from, newest_.size());
  for (auto i = newest_.size() - missing; i < newest_.size(); ++i)
    into.add(newest_[i].first, newest_[i].second);
  return commits_;
}

FeedState WalFeed::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

void WalFeed::add_bell(const EventFd& bell) {
  const MutexLock lock(mutex_);
  bells_.push_back(&bell);
}

void WalFeed::remove_bell(const EventFd& bell) {
  const MutexLock lock(mutex_);
  std::erase(bells_, &bell);
}

// ---- the thread

void WalFeed::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const WalTrouble trouble = follow(stop);
    if (stop.stop_requested()) return;
    note_trouble(trouble);
    const WalTime until = now_steady() + attempts_.failed(now_steady());
    while (!stop.stop_requested() && now_steady() < until) {
      if (!wait_for(interrupted_, -1, until)) return;
    }
  }
}

/// One attempt: returns why the log is not followed, or not any more.
WalTrouble WalFeed::follow(const std::stop_token& stop) {
  const auto facts = ask_facts();
  if (!facts) return {.reason = "the server is not there", .hint = facts.error().text()};
  if (auto trouble = find_trouble(*facts)) return std::move(*trouble);
  auto stream = WalConnection::open(options_, interrupted_);
  if (!stream) return explain_failure(stream.error());
  const auto made = make_slot(*stream, stop);
  if (!made) return explain_failure(made.error());
  if (!*made) {
    attempts_.impatient();
    return {.reason = "transactions run too long", .hint = "the slot waited for " + blocker_};
  }
  note_up();
  const Status ended = this->stream(*stream, stop);
  return ended ? WalTrouble{} : explain_failure(ended.error());
}

Result<WalFacts> WalFeed::ask_facts() {
  if (!asking_ || asking_->broken()) {
    asking_.reset();
    OUTBOX_TRY(asking_, Connection::open(options_, "feed", queries_));
    asking_->set_deadline(kAnswer);
  }
  auto facts = read_wal_facts(*asking_);
  if (!facts) {
    asking_.reset();
    return pass(facts);
  }
  direct_ = !facts->pooler;
  name_session(to_session_name(state()));
  return facts;
}

/// Returns false if it was interrupted, or the patience with running transactions is over.
Result<bool> WalFeed::make_slot(WalConnection& stream, const std::stop_token& stop) {
  const std::string slot = slot_name();
  const WalTime until = now_steady() + attempts_.patience();
  blocker_.clear();
  OUTBOX_TRY(const bool is_set_up, stream.run(queries_->wal_session, [] { return true; }));
  if (!is_set_up) return false;
  const auto waiting = [&] {
    if (stop.stop_requested() || now_steady() >= until) return false;
    name_blocker(stream.backend());
    return true;
  };
  OUTBOX_TRY(const bool made, stream.run(on_slot(queries_->make_slot, slot), waiting));
  if (!made) return false;
  return stream.run(on_slot(queries_->start_stream, slot), [] { return true; });
}

void WalFeed::name_blocker(int backend) {
  const auto rows = asking_->exec(&Queries::slot_blocker, {backend});
  if (!rows || rows->empty()) return;
  const bool prepared = rows->int4(0, 0) == 0;
  const std::string who =
      prepared ? "a prepared transaction" : "pid " + std::to_string(rows->int4(0, 0));
  if (std::exchange(blocker_, who) == who) return;
  log::info("the log is followed as soon as running transactions have ended, the relay polls",
            {{"blocker", who}, {"name", rows->text(0, prepared ? 2 : 1)}});
  show({.streams = false, .trouble = "waits for " + who});
}

/// Reads the stream until it ends or a stop is requested.
Status WalFeed::stream(WalConnection& stream, const std::stop_token& stop) {
  WalReader reader;
  WalPosition position(now_steady());
  WalTime ask_at = now_steady() + kAskEvery;
  std::vector<std::uint32_t> xids;
  while (!stop.stop_requested()) {
    const WalTime now = now_steady();
    // A huge transaction has many messages, and must not keep replies back.
    bool has_more = true;
    for (int i = 0; i < kMostAtOnce && has_more; ++i) {
      OUTBOX_TRY(const auto message, stream.take());
      has_more = message.has_value();
      if (!message) break;
      position.read(*message, now);
      if (const auto xid = reader.read(*message)) xids.push_back(*xid);
    }
    if (!xids.empty()) tell(xids);
    xids.clear();
    if (const auto reply = position.due(now)) OUTBOX_TRY(stream.reply(*reply));
    if (position.is_silent(now))
      return fail(Errc::unavailable, Remedy::reconnect, "the server is silent", "");
    if (now >= ask_at) {
      // A question without an answer says nothing about the stream.
      const auto facts = ask_facts();
      if (facts && facts->publication != WalFacts::Publication::good)
        return fail(Errc::not_found, Remedy::fix, "the publication is gone", "");
      ask_at = now_steady() + kAskEvery;
    }
    if (has_more) continue;
    OUTBOX_TRY(const bool goes_on, stream.wait(std::min(position.next_at(), ask_at)));
    if (!goes_on) return {};
  }
  return {};
}

// ---- what others see

void WalFeed::tell(const std::vector<std::uint32_t>& xids) {
  const MutexLock lock(mutex_);
  for (const std::uint32_t xid : xids) {
    if (newest_.size() == UnseenCommits::kMost) newest_.pop_front();
    newest_.emplace_back(xid, now_steady());
  }
  commits_ += xids.size();
  for (const EventFd* bell : bells_) bell->signal();
}

void WalFeed::note_up() {
  const WalTime now = now_steady();
  attempts_.streaming(now);
  log::info("the log tells of commits, the relay need not poll");
  told_ = {};
  {
    const MutexLock lock(mutex_);
    ++streams_;
    up_at_ = now;
  }
  show({.streams = true, .trouble = {}});
}

void WalFeed::note_trouble(const WalTrouble& trouble) {
  {
    const MutexLock lock(mutex_);
    up_at_.reset();
    for (const EventFd* bell : bells_) bell->signal();
  }
  show({.streams = false, .trouble = trouble.reason});
  if (std::exchange(told_, trouble) == trouble) return;
  if (wanted_ || !trouble.lasting) {
    log::warn("the log is not followed, the relay polls",
              {{"reason", trouble.reason}, {"hint", trouble.hint}});
  } else {
    log::info("the log cannot be followed, the relay polls",
              {{"reason", trouble.reason}, {"hint", trouble.hint}});
  }
}

void WalFeed::show(const FeedState& state) {
  {
    const MutexLock lock(mutex_);
    if (state_ == state) return;
    state_ = state;
  }
  name_session(to_session_name(state));
}

void WalFeed::name_session(const std::string& text) {
  if (!direct_ || !asking_ || asking_->broken()) return;
  (void)asking_->exec(&Queries::name_session, {session_ + text});
}

}  // namespace outbox::store::postgres
