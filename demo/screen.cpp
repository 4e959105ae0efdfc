#include "demo/screen.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/count.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace outbox::demo {
namespace {

constexpr std::chrono::milliseconds kLineEvery{1000};

bool is_terminal(std::FILE* out) {
  const char* const term = std::getenv("TERM");
  return isatty(fileno(out)) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

std::string row(std::string_view name, std::uint64_t number, std::string_view meaning) {
  return fmt::format("  {:<13}{:>10}   {}\n", name, with_commas(static_cast<std::int64_t>(number)),
                     meaning);
}

/// The number of messages that do not match a committed order.
std::uint64_t count_ghosts(const test::Verdict& verdict) {
  return verdict.ghosts + verdict.altered;
}

std::string how_often_killed(int kills) {
  return kills == 0 ? "Not killed this time."
                    : fmt::format("Killed {} with SIGKILL, and started again.",
                                  kills == 1 ? "once" : count("time", kills));
}

std::string publishing(int writers) {
  return std::to_string(writers) + (writers == 1 ? " publishes" : " publish");
}

std::string conclusion(const DemoOptions& options, const Outcome& outcome) {
  const test::Verdict& verdict = outcome.verdict;
  if (outcome.broken()) return "A PROMISE IS BROKEN: lost, ghosts and out of order must be 0.\n";
  if (outcome.on_their_way()) return "Stopped early: what is missing was still on its way.\n";
  if (outcome.interrupted) return "Stopped early.\n";
  if (options.naive) {
    return verdict.kept()
               ? "A dual write with luck. Kill the publisher, or run it for longer.\n"
               : "That is a dual write, no fault of this program: exit status 0. With an outbox: outbox-demo\n";
  }
  if (options.tasks) return "Every promise held: each order was packed once, in order.\n";
  return "Every promise held. The same shop without an outbox: outbox-demo --naive\n";
}

}  // namespace

std::string introduction(const DemoOptions& options, const std::string& shop,
                         const std::string& destination) {
  const std::string writers = count("writer", options.writers);
  if (options.naive) {
    return fmt::format(
        "The same shop without an outbox: it writes to its database and to a publisher.\n\n"
        "  shop       {}\n"
        "             {}: {} before the commit, {} after it.\n"
        "             Every tenth order is rolled back at the last moment.\n"
        "  publisher  {}\n"
        "             A process of its own. {}\n\n",
        shop, writers, publishing((options.writers + 1) / 2), publishing(options.writers / 2),
        destination, how_often_killed(options.kills));
  }
  if (options.tasks) {
    return fmt::format(
        "A shop takes orders and workers pack them, while somebody kills the workers.\n\n"
        "  shop    {}\n"
        "          {}: an order and its tasks are one transaction.\n"
        "          Every tenth is rolled back after its tasks were written.\n"
        "  worker  Processes of their own. {}\n"
        "          One order in 20 fails at first, one in 400 takes longer than a second.\n\n",
        shop, writers, how_often_killed(options.kills));
  }
  return fmt::format(
      "A shop takes orders and a relay delivers them, while somebody kills the relay.\n\n"
      "  shop   {}\n"
      "         {}: an order and its event are one transaction.\n"
      "         Every tenth is rolled back after its event was written.\n"
      "  relay  {}\n"
      "         A process of its own. {}\n\n",
      shop, writers, publishing((options.writers + 1) / 2), publishing(options.writers / 2),
      destination, how_often_killed(options.kills));
}

std::string progress_line(const Progress& progress) {
  const double seconds = static_cast<double>(progress.elapsed.count()) / 1000.0;
  const std::string committed =
      fmt::format("{:5.1f} s  committed {}", seconds, with_commas(progress.committed));
  std::string rolled_back = fmt::format("  rolled back {}", with_commas(progress.rolled_back));
  const std::string arrived = fmt::format("  arrived {}", with_commas(progress.delivered));
  std::string kills = progress.kills_planned == 0
                          ? ""
                          : fmt::format("  kills {}/{}", progress.kills, progress.kills_planned);
  const std::string closing = progress.closing ? "  closing" : "";
  const auto line = [&] { return committed + rolled_back + arrived + kills + closing; };
  for (std::string* const part : {&rolled_back, &kills}) {
    if (line().size() > kProgressWidth) part->clear();
  }
  return line();
}

namespace {

std::string table_of_tasks(const DemoOptions& options, const Outcome& outcome) {
  const test::Verdict& verdict = outcome.verdict;
  std::string text = "\nThe orders in the shop's tables against what its workers wrote there:\n\n";
  text += row("committed", verdict.committed, "orders, each with a task to pack it");
  text += row("done", verdict.delivered, "of them were packed");
  text += outcome.on_their_way() ? row("not done yet", verdict.lost, "committed, not packed yet")
                                 : row("lost", verdict.lost, "committed, and never packed");
  text += row("ghosts", count_ghosts(verdict),
              fmt::format("packed, and never committed ({} were rolled back)",
                          with_commas(outcome.rolled_back)));
  text +=
      row("out of order", verdict.out_of_order, "packed after a later order of the same customer");
  text += row("twice", verdict.duplicates, "packed a second time");
  text += row("stale", static_cast<std::uint64_t>(outcome.stale),
              "statements of customers that lack the last order");
  text += row("kills", static_cast<std::uint64_t>(outcome.kills), "of a worker");
  return text + "\n" + conclusion(options, outcome);
}

}  // namespace

std::string table(const DemoOptions& options, const Outcome& outcome) {
  if (options.tasks) return table_of_tasks(options, outcome);
  const test::Verdict& verdict = outcome.verdict;
  const std::string duplicates = options.naive || outcome.kills == 0
                                     ? "delivered again"
                                     : "again after a kill: sent, but not yet settled; same id";
  std::string text = fmt::format("\nThe shop's own tables against {}, read from the beginning:\n\n",
                                 outcome.destination);
  text += row("committed", verdict.committed, "orders in the shop's tables");
  text += row("delivered", verdict.delivered, "of them arrived");
  text += outcome.on_their_way() ? row("on their way", verdict.lost, "committed, not there yet")
                                 : row("lost", verdict.lost, "committed, and never arrived");
  text += row("ghosts", count_ghosts(verdict),
              fmt::format("arrived, and never committed ({} were rolled back)",
                          with_commas(outcome.rolled_back)));
  text +=
      row("out of order", verdict.out_of_order, "arrived after a later order of the same customer");
  text += row("duplicates", verdict.duplicates, duplicates);
  text += row("kills", static_cast<std::uint64_t>(outcome.kills),
              options.naive ? "of the publisher" : "of the relay");
  return text + "\n" + conclusion(options, outcome);
}

bool Outcome::on_their_way() const { return interrupted && !naive && verdict.lost > 0; }

bool Outcome::broken() const {
  if (naive) return false;
  if (tasks && (verdict.duplicates > 0 || (stale > 0 && !interrupted))) return true;
  return interrupted ? count_ghosts(verdict) > 0 || verdict.out_of_order > 0 : !verdict.kept();
}

std::string json(const Outcome& outcome) {
  const test::Verdict& verdict = outcome.verdict;
  nlohmann::ordered_json json{{"committed", verdict.committed},
                              {"delivered", verdict.delivered},
                              {"lost", verdict.lost},
                              {"ghosts", count_ghosts(verdict)},
                              {"out_of_order", verdict.out_of_order},
                              {"duplicates", verdict.duplicates},
                              {"kills", outcome.kills}};
  if (outcome.tasks) json["stale"] = outcome.stale;
  return write_json(json);
}

ProgressLine::ProgressLine(std::FILE* out, bool quiet_off_terminal)
    : out_(out), terminal_(is_terminal(out)), quiet_(quiet_off_terminal && !terminal_) {}

void ProgressLine::show(const Progress& progress) {
  if (quiet_) return;
  last_ = "  " + progress_line(progress);
  if (terminal_) {
    fmt::print(out_, "\r{}\x1b[K", last_);
    open_ = true;
  } else if (progress.elapsed - shown_at_ >= kLineEvery) {
    shown_at_ = progress.elapsed;
    fmt::print(out_, "{}\n", last_);
    last_.clear();
  }
  (void)std::fflush(out_);
}

void ProgressLine::finish() {
  if (open_) fmt::print(out_, "\n");
  if (!terminal_ && !quiet_ && !last_.empty()) fmt::print(out_, "{}\n", last_);
  open_ = false;
  last_.clear();
  (void)std::fflush(out_);
}

}  // namespace outbox::demo
