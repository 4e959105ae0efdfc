// A sink whose destination answers with more than yes or no, for who wants to know it: the result of a task (docs/design/tasks.md).
#pragma once

#include <string>

namespace outbox::sink {

struct AnswerBody {
  std::string text;
  bool longer{false};  ///< Than what is read; `text` is its beginning.
};

/// Implemented beside Sink. Called by the sink's thread, for one message at a time.
class Answers {
 public:
  Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  Answers(Answers&&) = delete;
  Answers& operator=(Answers&&) = delete;
  virtual ~Answers() = default;

  /// From now on. Otherwise what came with an ack is dropped.
  virtual void keep_answers() = 0;
  /// What the destination said to the message that was acked last.
  [[nodiscard]] virtual AnswerBody take_answer() = 0;
};

}  // namespace outbox::sink
