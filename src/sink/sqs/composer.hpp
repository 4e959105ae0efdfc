// Makes entries of batches of messages: which queue, which body, which attributes. Pure.
#pragma once

#include <outbox/sink.hpp>
#include <string>

#include "event/arena.hpp"
#include "sink/sqs/batch.hpp"
#include "sink/sqs/config.hpp"

namespace outbox::sink::sqs {

struct Composed {
  std::string queue;
  Entry entry;
};

class Composer {
 public:
  explicit Composer(const SqsOptions& options) : options_(options) {}

  /// An error is the event's fault.
  [[nodiscard]] Result<Composed> compose(const Message& message);

 private:
  [[nodiscard]] Result<std::string> queue_for(const Message& message);

  const SqsOptions& options_;
  event::Arena arena_;
};

}  // namespace outbox::sink::sqs
