// Remembers the first promise that was broken.
#pragma once

#include <string>

namespace outbox::sim {

class Promises {
 public:
  void broke(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }
  [[nodiscard]] const std::string& broken() const { return broken_; }

 private:
  std::string broken_;
};

}  // namespace outbox::sim
