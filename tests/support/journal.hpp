// Records what writers tried to commit, in a file outside of the database. An attempt is in the
// file, with its end unknown, before its COMMIT is sent; a line with its end follows. So the
// database can be compared with the journal after a crash.
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

  /// Appends these attempts with their ends so far. They are in the file when this returns. Any
  /// thread may call this.
  void write(const std::vector<Attempt>& attempts) const;

  /// The newest state of each attempt, in the order of their first lines.
  [[nodiscard]] static std::vector<Attempt> read(const std::string& path);

 private:
  int file_;
};

}  // namespace outbox::test
