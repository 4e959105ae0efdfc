#include "bench/peer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text_file.hpp"
#include "support/child_process.hpp"
#include "support/failure.hpp"
#include "support/temp_dir.hpp"

namespace outbox::bench {
namespace {

using test::give_up;

constexpr std::chrono::minutes kPeerLimit{10};
constexpr std::size_t kMostOutput = 100'000;

/// The last line has the peer's result, or why there is none.
std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);  // npos + 1 is 0.
}

}  // namespace

PeerDrain run_peer(const BenchOptions& options, const std::string& schema, std::int64_t jobs) {
  const test::TempDir folder("outbox-bench");
  const std::string output = folder.file("output");
  // The URL may have a password, and all users can see arguments.
  test::ChildProcess peer(
      {.command = {options.peer, "-schema", schema, "-jobs", std::to_string(jobs)},
       .environment = {{"DATABASE_URL", options.store_url}},
       .output = output});
  const bool ended = peer.wait(kPeerLimit).has_value();
  const std::string line = last_line(test::must(read_text_file(output, kMostOutput)).text);
  if (!ended)
    give_up(Errc::deadline_exceeded, options.peer + " did not end within 10 minutes", line);
  const auto result = nlohmann::json::parse(line, nullptr, false);
  if (peer.ended_with() != "exit status 0" || !result.is_object())
    give_up(Errc::internal, fmt::format("{} failed: {}", options.peer, peer.ended_with()), line);
  return {.jobs_per_second = result.value("jobs_per_second", 0.0),
          .peak_rss_mib = result.value("peak_rss_mib", 0.0)};
}

}  // namespace outbox::bench
