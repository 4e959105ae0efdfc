// The inbox of consumers.
#include "store/inbox.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::sql {
namespace {

constexpr std::size_t kPageOfInbox = 5000;

InboxRow read_inbox_row(Row row) {
  InboxRow one;
  row.read(one.consumer, one.message_id, one.event_type, one.place, one.task, one.received_us,
           one.arrivals);
  return one;
}

/// A time and the id of a message: the order of the rows of a consumer.
using Place = std::pair<std::int64_t, std::string_view>;
constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

/// The place before which the wanted rows of this consumer are.
Place find_end(std::string_view consumer, const InboxFilter& filter) {
  const Place until{filter.until_us.value_or(kNoEnd), {}};
  if (!filter.before) return until;
  // Rows of one moment are in the order of their consumers, backwards.
  Place end{filter.before->received_us, {}};
  if (consumer == filter.before->consumer) end.second = filter.before->message_id;
  if (consumer < filter.before->consumer) ++end.first;
  return std::min(until, end);
}

/// The messages of one transaction, and what becomes of each.
class Batch {
 public:
  Batch(std::string_view consumer, std::span<const InboxMessage> messages)
      : consumer_(consumer), messages_(messages), arrivals_(messages.size(), Arrival::first) {}

  [[nodiscard]] Result<Decision> write(Connection& db, bool skip_older) {
    std::fill(arrivals_.begin(), arrivals_.end(), Arrival::first);
    if (skip_older) OUTBOX_TRY(find_older(db));
    OUTBOX_TRY(insert(db));
    if (skip_older) OUTBOX_TRY(note_latest(db));
    std::vector<Event> tasks;
    std::vector<EventId> ids;
    std::vector<std::string> again;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (arrivals_[i] == Arrival::again) again.push_back(messages_[i].id);
      if (arrivals_[i] != Arrival::first) continue;
      tasks.push_back(messages_[i].task);
      ids.push_back(*messages_[i].task.id);
    }
    OUTBOX_TRY(db.run_and_write(&Statements::received_again,
                                {consumer_, std::span<const std::string>(again)}, tasks, ids));
    return Decision::commit;
  }

  [[nodiscard]] std::vector<Arrival> take() { return std::move(arrivals_); }

 private:
  /// Inserts the rows. Those that were there before, or twice in this batch, arrive again.
  [[nodiscard]] Status insert(Connection& db) {
    // All transactions insert in the order of the ids, so that two of them which have the same
    // messages wait for each other instead of ending in a deadlock.
    std::vector<std::size_t> order(messages_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return messages_[a].id < messages_[b].id;
    });
    std::vector<std::string> ids;
    std::vector<std::string> types;
    std::vector<std::string> places;
    std::vector<std::string> tasks;
    for (auto* const texts : {&ids, &types, &places, &tasks}) texts->reserve(order.size());
    for (const std::size_t i : order) {
      const InboxMessage& message = messages_[i];
      if (!ids.empty() && ids.back() == message.id) {
        arrivals_[i] = Arrival::again;
        continue;
      }
      ids.push_back(message.id);
      types.push_back(message.task.event_type);
      places.push_back(message.place);
      tasks.push_back(arrivals_[i] == Arrival::first ? message.task.id->str() : std::string());
    }
    using Texts = std::span<const std::string>;
    OUTBOX_TRY(const Rows rows,
               db.exec(&Statements::insert_received,
                       {consumer_, Texts(ids), Texts(types), Texts(places), Texts(tasks)}));
    if (rows.size() == ids.size()) return {};
    std::unordered_set<std::string> inserted;
    for (std::size_t row = 0; row < rows.size(); ++row)
      inserted.insert(rows[row].next<std::string>());
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (!inserted.contains(messages_[i].id)) arrivals_[i] = Arrival::again;
    }
    return {};
  }

  /// Keys are locked, new ones too, so that a message of another batch is compared after this one.
  [[nodiscard]] Status find_older(Connection& db) {
    std::vector<std::string> keys;
    for (const InboxMessage& message : messages_) {
      if (has_number(message)) keys.push_back(message.task.aggregate_id);
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    latest_.clear();
    OUTBOX_TRY(const Rows rows, db.exec(&Statements::latest_of_keys,
                                        {consumer_, std::span<const std::string>(keys)}));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::string key;
      std::int64_t seq = 0;
      rows[i].read(key, seq);
      latest_[std::move(key)] = seq;
    }
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (!has_number(messages_[i])) continue;
      constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
      auto& latest = latest_.try_emplace(messages_[i].task.aggregate_id, kNone).first->second;
      if (*messages_[i].seq < latest) arrivals_[i] = Arrival::older;
      latest = std::max(latest, *messages_[i].seq);
    }
    return {};
  }

  [[nodiscard]] Status note_latest(Connection& db) {
    std::vector<std::string> keys;
    std::vector<std::int64_t> seqs;
    for (const auto& [key, seq] : latest_) {
      keys.push_back(key);
      seqs.push_back(seq);
    }
    return db.run(&Statements::note_latest, {consumer_, std::span<const std::string>(keys),
                                             std::span<const std::int64_t>(seqs)});
  }

  [[nodiscard]] static bool has_number(const InboxMessage& message) {
    return message.seq && !message.task.aggregate_id.empty();
  }

  const std::string_view consumer_;
  const std::span<const InboxMessage> messages_;
  std::vector<Arrival> arrivals_;
  std::map<std::string, std::int64_t> latest_;
};

class SqlInbox final : public store::Inbox {
 public:
  explicit SqlInbox(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<Arrival>> receive(std::string_view consumer,
                                                     std::span<const InboxMessage> messages,
                                                     bool skip_older) override {
    if (messages.empty()) return std::vector<Arrival>{};
    Batch batch(consumer, messages);
    OUTBOX_TRY(db_->transact([&] { return batch.write(*db_, skip_older); }));
    return batch.take();
  }

  /// Each consumer has a part of the index, so its rows are read apart from those of others.
  [[nodiscard]] Result<std::vector<InboxRow>> list(const InboxFilter& filter,
                                                   std::size_t limit) override {
    if (!filter.consumer.empty()) return list_one(filter.consumer, filter, limit);
    OUTBOX_TRY(const auto all, consumers(0));
    std::vector<InboxRow> rows;
    for (const InboxConsumer& one : all) {
      OUTBOX_TRY(auto of_one, list_one(one.name, filter, limit));
      std::move(of_one.begin(), of_one.end(), std::back_inserter(rows));
    }
    std::sort(rows.begin(), rows.end(), [](const InboxRow& one, const InboxRow& other) {
      return std::tie(one.received_us, one.consumer, one.message_id) >
             std::tie(other.received_us, other.consumer, other.message_id);
    });
    if (rows.size() > limit) rows.resize(limit);
    return rows;
  }

  [[nodiscard]] Result<std::vector<InboxConsumer>> consumers(std::int64_t count) override {
    OUTBOX_TRY(const Rows rows, db_->exec(&Statements::inbox_consumers, {count + 1}));
    return rows.list([count](Row row) {
      InboxConsumer one;
      row.read(one.name, one.messages, one.oldest_us, one.newest_us);
      one.more = one.messages > count;
      one.messages = std::min(one.messages, count);
      return one;
    });
  }

  [[nodiscard]] Status read(std::string_view consumer,
                            const std::function<void(const InboxRow&)>& visit) override {
    std::string after;
    for (;;) {
      OUTBOX_TRY(const Rows rows,
                 db_->exec(&Statements::read_inbox,
                           {consumer, after, static_cast<std::int64_t>(kPageOfInbox)}));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const InboxRow row = read_inbox_row(rows[i]);
        visit(row);
        if (i + 1 == rows.size()) after = row.message_id;
      }
      if (rows.size() < kPageOfInbox) return {};
    }
  }

 private:
  [[nodiscard]] Result<std::vector<InboxRow>> list_one(const std::string& consumer,
                                                       const InboxFilter& filter,
                                                       std::size_t limit) {
    const auto time = [](std::optional<std::int64_t> us) {
      return us ? Param(Time{*us}) : Param(nullptr);
    };
    const Place end = find_end(consumer, filter);
    std::vector<Param> params{consumer,
                              text_or_null(filter.event_type),
                              time(filter.since_us),
                              end.first == kNoEnd ? Param(nullptr) : Param(Time{end.first}),
                              end.second,
                              static_cast<std::int64_t>(limit)};
    const bool by_id = !filter.message_id.empty();
    if (by_id) params.emplace_back(filter.message_id);
    OUTBOX_TRY(const Rows rows,
               db_->exec(by_id ? &Statements::find_in_inbox : &Statements::list_inbox, params));
    return rows.list(read_inbox_row);
  }

  const std::unique_ptr<Connection> db_;
};

}  // namespace

std::unique_ptr<store::Inbox> make_inbox(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlInbox>(std::move(connection));
}

}  // namespace outbox::store::sql
