#include "cli/enqueue_lines.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "cli/exit.hpp"
#include "cli/line_reader.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "event/json_event.hpp"

namespace outbox::cli {
namespace {

constexpr std::size_t kBatchLines = 1000;
constexpr std::size_t kBatchBytes = std::size_t{4} << 20U;

/// The file, which stays open until the process ends, or stdin.
int open_input(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw Failure(kError, std::string(std::strerror(errno)) + ": " + path,
                  "check the path; - is stdin");
  return fd;
}

/// The size of a file; 0 if it is not known.
std::size_t find_size(int fd) {
  struct stat status {};
  const bool known = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  return known ? static_cast<std::size_t>(status.st_size) : 0;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

/// There is no progress while the lines are typed at a terminal.
Progress::Wanted choose_progress(const EnqueueLinesOptions& options, int input) {
  if (options.progress) return Progress::Wanted::always;
  return isatty(input) == 0 ? Progress::Wanted::on_terminal : Progress::Wanted::never;
}

class LineEnqueuer {
 public:
  LineEnqueuer(const EnqueueLinesOptions& options, int input, store::Writer& writer)
      : options_(options),
        writer_(writer),
        reader_(input, signals_.fd()),
        progress_(choose_progress(options, input), find_size(input)) {
    batch_.reserve(kBatchLines);
  }

  int run() {
    std::string_view line;
    while (true) {
      switch (reader_.next(line)) {
        case LineReader::Next::line: take(line); break;
        case LineReader::Next::idle: write(); break;
        case LineReader::Next::end: write(); return finish();
        case LineReader::Next::interrupted: return interrupted();
        case LineReader::Next::too_long:
          ++line_;
          refuse("is longer than 16 MiB", "one event per line");
        case LineReader::Next::failed: ++line_; not_read();
      }
    }
  }

 private:
  void take(std::string_view line) {
    ++line_;
    if (is_blank(line)) return;
    auto event = event::parse_event(line);
    if (!event) refuse(event.error().message, event.error().hint);
    if (const Status valid = validate(*event); !valid)
      refuse(valid.error().message, valid.error().hint);
    if (batch_.empty()) first_line_ = line_;
    batch_.push_back(std::move(*event));
    batch_bytes_ += line.size();
    if (batch_.size() >= kBatchLines || batch_bytes_ >= kBatchBytes) write();
  }

  void write() {
    if (!batch_.empty()) {
      const auto ids = writer_.write(batch_);
      if (!ids) not_written(ids.error());
      written_ += batch_.size();
      ++transactions_;
      if (options_.ids) print_ids(*ids);
      batch_.clear();
      batch_bytes_ = 0;
    }
    progress_.at(written_, reader_.bytes_read());
  }

  /// Ends the verb when the ids cannot be written, and says how far it got.
  void print_ids(const std::vector<EventId>& ids) {
    std::string text;
    for (const EventId& id : ids) text.append(id.str()).append("\n");
    write_out(text);
    if (flush_out()) return;
    progress_.clear();
    throw Failure(kError,
                  fmt::format("stdout: the ids of lines {} to {} could not all be written; {}",
                              first_line_, line_, committed()),
                  fmt::format("continue with line {}", line_ + 1));
  }

  /// The first line that was not written.
  [[nodiscard]] std::uint64_t resume_line() const { return batch_.empty() ? line_ : first_line_; }
  [[nodiscard]] std::string committed() const {
    return count("event", written_, "was committed", "were committed");
  }
  [[nodiscard]] std::string resume() const {
    return fmt::format("continue with line {}", resume_line());
  }

  /// Ends the verb because of the line read last.
  [[noreturn]] void end_at_line(const std::string& what, const std::string& hint) {
    progress_.clear();
    const std::string path = options_.path == "-" ? "stdin" : options_.path;
    throw Failure(kError,
                  fmt::format("{}:{}: {}; {} before it, nothing from line {} on", path, line_, what,
                              committed(), resume_line()),
                  hint + ", then " + resume());
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& hint) {
    end_at_line(what, (hint.empty() ? "" : hint + "; ") + "correct the line");
  }

  [[noreturn]] void not_read() {
    end_at_line(std::string("cannot be read: ") + std::strerror(reader_.error()),
                "provide an input that can be read");
  }

  [[noreturn]] void not_written(const Error& error) {
    progress_.clear();
    const bool unknown = error.effect == Effect::unknown;
    const std::string origin = error.origin.empty() ? "" : " [" + error.origin + "]";
    throw Failure(
        kError,
        fmt::format("{}{}: lines {} to {} {}; {} before it", error.message, origin, first_line_,
                    line_, unknown ? "may or may not have been written" : "were not written",
                    committed()),
        fmt::format("{}{}then {}", error.hint.empty() ? "" : error.hint + "; ",
                    unknown ? "check whether they are in the store, " : "", resume()));
  }

  int interrupted() {
    progress_.clear();
    if (batch_.empty()) ++line_;
    print_error("interrupted: " + committed() + " (hint: " + resume() + ")");
    return kInterrupted;
  }

  int finish() {
    progress_.clear();
    const double seconds = progress_.seconds();
    if (options_.json) {
      print_json({{"events", written_},
                  {"transactions", transactions_},
                  {"lines", line_},
                  {"seconds", seconds}});
    } else if (!options_.ids) {
      print("{} event{} in {} transaction{}, {:.1f} s\n",
            with_commas(static_cast<std::int64_t>(written_)), written_ == 1 ? "" : "s",
            with_commas(static_cast<std::int64_t>(transactions_)), transactions_ == 1 ? "" : "s",
            seconds);
    }
    return kOk;
  }

  const EnqueueLinesOptions& options_;
  store::Writer& writer_;
  Signals signals_{kInterrupted};
  LineReader reader_;
  Progress progress_;
  std::vector<Event> batch_;
  std::size_t batch_bytes_{0};
  std::uint64_t line_{0};        ///< The line that was read last.
  std::uint64_t first_line_{0};  ///< The first line of the batch.
  std::uint64_t written_{0};
  std::uint64_t transactions_{0};
};

}  // namespace

int enqueue_lines(const EnqueueLinesOptions& options, store::Store& store) {
  const int input = open_input(options.path);
  const auto writer = must(store.writer());
  return LineEnqueuer(options, input, *writer).run();
}

}  // namespace outbox::cli
