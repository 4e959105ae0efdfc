// What was sent on one connection and is not confirmed, in the order of the answers: events, and the WAITs between them. An event
// that was added stays here until the next WAIT is answered. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace outbox::sink::redis {

class InFlight {
 public:
  struct Entry {
    Token token{0};
    std::size_t bytes{0};
    std::string stream;
  };

  void add(Entry entry) {
    bytes_ += entry.bytes;
    ++events_;
    expected_.emplace_back(std::move(entry));
  }
  /// Events were added after the last one.
  [[nodiscard]] bool lacks_wait() const {
    return expected_.empty() ? !added_.empty() : expected_.back().has_value();
  }
  void add_wait() { expected_.emplace_back(std::nullopt); }

  [[nodiscard]] bool empty() const { return expected_.empty() && added_.empty(); }
  [[nodiscard]] std::size_t events() const { return events_ + added_.size(); }
  /// Of what is not answered.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool expects_answer() const { return !expected_.empty(); }

  /// What the next answer is for; none: a WAIT.
  [[nodiscard]] std::optional<Entry> answered() {
    OUTBOX_CHECK(!expected_.empty());
    std::optional<Entry> entry = std::move(expected_.front());
    expected_.pop_front();
    if (entry) {
      bytes_ -= entry->bytes;
      --events_;
    }
    return entry;
  }
  /// It was added, and waits for the next WAIT.
  void hold(Token token) { added_.push_back(token); }
  [[nodiscard]] std::vector<Token> take_added() { return std::exchange(added_, {}); }

  /// Nothing more will be answered.
  [[nodiscard]] std::vector<Token> take_all() {
    std::vector<Token> tokens = take_added();
    for (const auto& entry : expected_) {
      if (entry) tokens.push_back(entry->token);
    }
    expected_.clear();
    events_ = bytes_ = 0;
    return tokens;
  }

 private:
  std::deque<std::optional<Entry>> expected_;
  std::vector<Token> added_;
  std::size_t events_{0};  ///< Among expected_.
  std::size_t bytes_{0};
};

}  // namespace outbox::sink::redis
