// Compares what writers tried to commit with what the destination holds. The order within a key is
// that of the versions which the writers read and incremented under the lock of a row, so it is
// independent of the outbox. Pure.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace outbox::test {

/// One event that a writer tried to commit.
struct Attempt {
  enum class End : std::uint8_t {
    committed,
    rolled_back,
    /// The connection broke at the commit, or the commit was asynchronous and the server crashed.
    unknown,
  };
  std::string id;
  std::string key;
  std::int64_t version{0};
  std::string type;
  std::string body;
  End end{End::unknown};
  /// Whether COMMIT returned. This is no promise if the commit was asynchronous.
  bool acknowledged{false};
};

/// One message at the destination, in the order of arrival.
struct Delivery {
  std::string id;  ///< Empty if the message cannot be read.
  std::string key;
  std::string body;
};

struct Verdict {
  std::uint64_t committed{0};
  std::uint64_t delivered{0};     ///< Distinct events that arrived as they were written.
  std::uint64_t lost{0};          ///< Committed, but never delivered.
  std::uint64_t ghosts{0};        ///< Not committed, never written, or unreadable, but delivered.
  std::uint64_t out_of_order{0};  ///< First deliveries of a key after a later one.
  std::uint64_t duplicates{0};
  /// Deliveries whose key or body differ from what was written. They do not count as delivered.
  std::uint64_t altered{0};
  std::uint64_t unknown{0};  ///< Attempts whose end is unknown. They may be delivered or not.
  std::vector<std::string> examples{};

  /// Whether no promise is broken. Duplicates break none.
  [[nodiscard]] bool kept() const { return lost + ghosts + out_of_order + altered == 0; }
};
std::ostream& operator<<(std::ostream& out, const Verdict& verdict);

class Judge {
 public:
  explicit Judge(const std::vector<Attempt>& attempts);
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// Takes the next message in the order of the destination, or of a partition if it has several.
  void saw(const Delivery& delivery);
  /// Whether everything that was committed has been seen.
  [[nodiscard]] bool complete() const { return committed_seen_ == verdict_.committed; }
  [[nodiscard]] Verdict verdict() const;

 private:
  std::vector<Attempt> attempts_;
  std::unordered_map<std::string, const Attempt*> by_id_;
  std::unordered_set<std::string> seen_;
  std::unordered_map<std::string, std::int64_t> newest_;  ///< The latest version seen of each key.
  std::uint64_t committed_seen_{0};
  Verdict verdict_;
};

[[nodiscard]] Verdict judge(const std::vector<Attempt>& attempts,
                            const std::vector<Delivery>& deliveries);

}  // namespace outbox::test
