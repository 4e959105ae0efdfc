// The text of a destination's answer, which becomes a task's result (docs/design/tasks.md).
#pragma once

#include <string>

namespace outbox::sink {

struct AnswerBody {
  std::string text;
  bool longer{false};  ///< Whether `text` is only the beginning of the answer.
};

/// Implemented by a class beside Sink. The sink's thread calls it, for one message at a time.
class Answers {
 public:
  Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  Answers(Answers&&) = delete;
  Answers& operator=(Answers&&) = delete;
  virtual ~Answers() = default;

  /// Keeps the answers from now on. Before this call the text that came with an ack is dropped.
  virtual void keep_answers() = 0;
  /// What the destination said to the message that was acked last.
  [[nodiscard]] virtual AnswerBody take_answer() = 0;
};

}  // namespace outbox::sink
