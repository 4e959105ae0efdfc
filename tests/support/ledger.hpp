// What the writers tried, what the destination holds, and the comparison. The order is that of the versions which the
// writers read and incremented under the lock of their aggregate's row: nothing of ours decides it.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace outbox::test {

/// One event that a writer tried to commit.
struct Attempt {
  enum class End : std::uint8_t {
    committed,
    rolled_back,
    unknown,  ///< The connection broke at the commit, or the commit was asynchronous and the server crashed.
  };
  std::string id;
  std::string key;
  std::int64_t version{0};
  std::string type;
  std::string body;
  End end{End::unknown};
  bool acknowledged{false};  ///< COMMIT came back. After an asynchronous one that is no promise.
};

/// One message at the destination, in the order of arrival.
struct Delivery {
  std::string id;
  std::string key;
  std::string body;
};

struct Verdict {
  std::uint64_t committed{0};
  std::uint64_t delivered{0};     ///< Distinct events.
  std::uint64_t lost{0};          ///< Committed, never delivered.
  std::uint64_t ghosts{0};        ///< Delivered, not committed or never written.
  std::uint64_t out_of_order{0};  ///< First deliveries of a key behind a later one.
  std::uint64_t duplicates{0};
  std::uint64_t altered{0};  ///< Key or body differ from what was written.
  std::uint64_t unknown{0};  ///< Attempts whose end nobody knows; delivered or not, both are right.
  std::vector<std::string> examples;

  /// No promise is broken; duplicates are counted apart.
  [[nodiscard]] bool kept() const { return lost + ghosts + out_of_order + altered == 0; }
};
std::ostream& operator<<(std::ostream& out, const Verdict& verdict);

[[nodiscard]] Verdict judge(const std::vector<Attempt>& attempts,
                            const std::vector<Delivery>& deliveries);

/// The attempts of all writers. Any thread.
class AttemptLog {
 public:
  void add(const std::vector<Attempt>& attempts) {
    const std::scoped_lock lock(mutex_);
    attempts_.insert(attempts_.end(), attempts.begin(), attempts.end());
  }
  [[nodiscard]] std::vector<Attempt> all() const {
    const std::scoped_lock lock(mutex_);
    return attempts_;
  }
  [[nodiscard]] std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return attempts_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Attempt> attempts_;
};

}  // namespace outbox::test
