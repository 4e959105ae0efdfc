// What a received message says: its id, type, key and number, wherever its format has them
// (docs/guide/consumers.md), and the task that it becomes. Pure.
#pragma once

#include <optional>
#include <outbox/consumer.hpp>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

#include "source/source.hpp"
#include "source/spot.hpp"
#include "store/inbox.hpp"

namespace outbox::inbox {

/// The header of a task that says which message it was. The inbox knows where it was.
inline constexpr std::string_view kMessageIdHeader = "message-id";

class MessageReader {
 public:
  [[nodiscard]] static Result<MessageReader> make(const ConsumerSpec& spec);

  struct Read {
    store::InboxMessage message;
    /// Why the message cannot be understood. Its task is dead from the beginning, with this reason.
    std::string unreadable{};
  };
  [[nodiscard]] Read read(source::Received received) const;

 private:
  MessageReader() = default;

  std::string aggregate_type_;
  source::Spot id_;
  source::Spot type_;
  source::Spot key_;
  source::Spot seq_;
};

}  // namespace outbox::inbox
