// What was sent on one connection and is not confirmed, in the order of the answers: events, the
// commands that precede some of them, and the WAITs between them. An event that was added stays
// here until the next WAIT is answered. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <outbox/sink.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace outbox::sink::hiredis {

class InFlight {
 public:
  enum class Kind : std::uint8_t { event, first, wait };
  struct Entry {
    Kind kind{Kind::event};
    Token token{0};
    std::size_t bytes{0};
    std::string place;  ///< The event's place for people, such as "stream orders".
  };

  void add(Entry entry) {
    bytes_ += entry.bytes;
    if (entry.kind == Kind::event) ++events_;
    expected_.push_back(std::move(entry));
  }
  /// Whether something was sent after the last WAIT.
  [[nodiscard]] bool lacks_wait() const {
    return expected_.empty() ? !added_.empty() : expected_.back().kind != Kind::wait;
  }
  void add_wait() { add({.kind = Kind::wait, .place = {}}); }

  [[nodiscard]] bool empty() const { return expected_.empty() && added_.empty(); }
  [[nodiscard]] std::size_t events() const { return events_ + added_.size(); }
  /// The bytes that are not answered.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool expects_answer() const { return !expected_.empty(); }

  /// Removes and returns the entry that the next answer is for.
  [[nodiscard]] Entry answered() {
    OUTBOX_CHECK(!expected_.empty());
    Entry entry = std::move(expected_.front());
    expected_.pop_front();
    bytes_ -= entry.bytes;
    if (entry.kind == Kind::event) --events_;
    return entry;
  }
  /// Keeps an event that was added until the next WAIT is answered.
  void hold(Token token) { added_.push_back(token); }
  [[nodiscard]] std::vector<Token> take_added() { return std::exchange(added_, {}); }

  /// Removes everything, because nothing more will be answered.
  [[nodiscard]] std::vector<Token> take_all() {
    std::vector<Token> tokens = take_added();
    for (const Entry& entry : expected_) {
      if (entry.kind == Kind::event) tokens.push_back(entry.token);
    }
    expected_.clear();
    events_ = bytes_ = 0;
    return tokens;
  }

 private:
  std::deque<Entry> expected_;
  std::vector<Token> added_;
  std::size_t events_{0};  ///< The number of events in expected_.
  std::size_t bytes_{0};
};

}  // namespace outbox::sink::hiredis
