// The URLs of queues that were looked up.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

namespace outbox::sink::sqs {

class QueueUrls {
 public:
  /// Null: it is not known.
  [[nodiscard]] const std::string* find(const std::string& queue) const {
    const auto found = urls_.find(queue);
    return found == urls_.end() ? nullptr : &found->second;
  }
  void remember(const std::string& queue, std::string url) {
    // Names that come from events may be without end.
    if (urls_.size() >= kMost) urls_.clear();
    urls_[queue] = std::move(url);
  }
  void forget(const std::string& queue) { urls_.erase(queue); }
  void clear() { urls_.clear(); }

 private:
  static constexpr std::size_t kMost = 10'000;
  std::unordered_map<std::string, std::string> urls_;
};

}  // namespace outbox::sink::sqs
