#include "task/batch.hpp"

#include <utility>

namespace outbox::task {

void Batch::add(TaskType& type, const Message& message,
                std::shared_ptr<const event::TaskRules> rules) {
  Job job{.type = &type,
          .token = message.token,
          .id = message.event->id,
          .seq = message.event->seq,
          .created_at = message.event->created_at,
          .attempt = message.attempt,
          .rules = std::move(rules),
          .payload = text_.size()};
  text_.append(message.body);
  job.key = text_.size();
  text_.append(message.event->aggregate_id);
  job.content_type = text_.size();
  text_.append(message.event->content_type);
  job.headers = text_.size();
  text_.append(message.event->headers);
  job.end = text_.size();
  usual_ +=
      std::clamp<std::chrono::nanoseconds>(type.usual(), std::chrono::microseconds(1), kQuick);
  jobs_.push_back(std::move(job));
}

void Batch::cut(const std::function<void(const Job&)>& each) {
  for (std::size_t place = next_.exchange(jobs_.size(), std::memory_order_relaxed);
       place < jobs_.size(); ++place)
    each(jobs_[place]);
}

}  // namespace outbox::task
