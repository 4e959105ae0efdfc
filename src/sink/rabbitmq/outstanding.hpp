// The messages of one channel that the server has not confirmed, each with the number by which the
// server counts it: 1 for the first message after confirm.select, and so on (RabbitMQ's "Publisher
// Confirms"). A channel that is opened again counts from 1 again. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <outbox/sink.hpp>
#include <utility>

namespace outbox::sink::rabbitmq {

class Outstanding {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Entry {
    Token token{0};
    std::int64_t seq{0};
    EventId id{};
    std::size_t route{0};  ///< A hash of exchange and routing key.
    std::size_t bytes{0};  ///< The bytes of the body.
    std::uint64_t end{0};  ///< The message's end among the bytes written to the connection.
    TimePoint sent{};
    bool returned{false};  ///< Whether the server returned it because no queue gets it.
    bool over{false};      ///< Whether it has its outcome.
  };

  /// Adds the next message that is published.
  void add(Entry entry) {
    entries_.push_back(entry);
    ++open_;
  }

  [[nodiscard]] bool empty() const { return open_ == 0; }
  [[nodiscard]] std::size_t size() const { return open_; }

  /// The message that the server returns now, before it confirms it; null if there is none.
  /// basic.return has no number, and the writer may have given two events the same id.
  [[nodiscard]] Entry* find_returned(const EventId& id, std::size_t route) {
    for (Entry& entry : entries_) {
      if (!entry.over && !entry.returned && entry.id == id && entry.route == route) return &entry;
    }
    return nullptr;
  }

  /// Handles basic.ack or basic.nack. `multiple` means all messages up to this number that have no
  /// outcome yet; number 0 then means all (specification, basic.ack). Unknown numbers are ignored.
  template <class Visit>
  void settle(std::uint64_t number, bool multiple, Visit&& visit) {
    const std::uint64_t last = first_ + entries_.size() - 1;
    if (multiple && number == 0) number = last;
    if (number < first_ || number > last) return;
    for (std::uint64_t at = multiple ? first_ : number; at <= number; ++at) {
      Entry& entry = entries_[static_cast<std::size_t>(at - first_)];
      if (!entry.over) close(entry, visit);
    }
    drop_finished();
  }

  /// Takes the messages that were sent before `than`, oldest first.
  template <class Visit>
  void take_older(TimePoint than, Visit&& visit) {
    for (Entry& entry : entries_) {
      if (entry.sent >= than) break;
      if (!entry.over) close(entry, visit);
    }
    drop_finished();
  }

  /// Takes all messages, oldest first. Their numbers stay taken.
  template <class Visit>
  void take_all(Visit&& visit) {
    for (Entry& entry : entries_) {
      if (!entry.over) close(entry, visit);
    }
    drop_finished();
  }

  /// Forgets the old channel, which confirms nothing any more. All messages have their outcome.
  void start_again() {
    entries_.clear();
    open_ = 0;
    first_ = 1;
  }

 private:
  template <class Visit>
  void close(Entry& entry, Visit&& visit) {
    entry.over = true;
    --open_;
    visit(std::as_const(entry));
  }

  void drop_finished() {
    while (!entries_.empty() && entries_.front().over) {
      entries_.pop_front();
      ++first_;
    }
  }

  std::deque<Entry> entries_;  ///< Entries with the numbers first_, first_ + 1, ...
  std::uint64_t first_{1};
  std::size_t open_{0};
};

}  // namespace outbox::sink::rabbitmq
