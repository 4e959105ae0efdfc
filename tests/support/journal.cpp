#include "support/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

namespace outbox::test {

// A line is END ACKNOWLEDGED ID KEY VERSION TYPE BODY. Only the body, at the end, may contain
// blanks.

Journal::Journal(const std::string& path)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (file_ < 0) throw std::runtime_error("cannot write " + path);
}

Journal::~Journal() { ::close(file_); }

void Journal::write(const std::vector<Attempt>& attempts) const {
  std::ostringstream lines;
  for (const Attempt& attempt : attempts) {
    lines << static_cast<int>(attempt.end) << ' ' << attempt.acknowledged << ' ' << attempt.id
          << ' ' << attempt.key << ' ' << attempt.version << ' ' << attempt.type << ' '
          << attempt.body << '\n';
  }
  // One call writes all lines, so that the lines of several threads do not mix.
  const std::string text = lines.str();
  if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the journal cannot be written");
}

std::vector<Attempt> Journal::read(const std::string& path) {
  std::vector<Attempt> all;
  std::unordered_map<std::string, std::size_t> place;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Attempt attempt;
    int end = 0;
    words >> end >> attempt.acknowledged >> attempt.id >> attempt.key >> attempt.version >>
        attempt.type;
    words.get();
    std::getline(words, attempt.body);
    if (attempt.body.empty()) throw std::runtime_error("not a line of a journal: " + line);
    attempt.end = static_cast<Attempt::End>(end);
    const auto [known, is_new] = place.emplace(attempt.id, all.size());
    if (is_new) {
      all.push_back(std::move(attempt));
    } else {
      all[known->second] = std::move(attempt);
    }
  }
  return all;
}

}  // namespace outbox::test
