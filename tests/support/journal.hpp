// What writers tried to commit, in a file outside of the database. An attempt is there before its
// COMMIT is sent, with its end unknown; the line with its end follows. So what the database says
// after a crash can be held against it.
#pragma once

#include <string>
#include <vector>

#include "support/ledger.hpp"

namespace outbox::test {

class Journal {
 public:
  explicit Journal(const std::string& path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  Journal(Journal&&) = delete;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  /// Appends these attempts with their ends so far. In the file when this returns. Any thread.
  void write(const std::vector<Attempt>& attempts) const;

  /// The newest state of each attempt, in the order of their first lines.
  [[nodiscard]] static std::vector<Attempt> read(const std::string& path);

 private:
  int file_;
};

}  // namespace outbox::test
