// outbox init: writes a first configuration.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/setting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

constexpr std::string_view kStore =
    R"(# The configuration of outbox. `outbox config reference` lists all settings, `outbox config check` checks this file.

[store]
# postgresql://USER@HOST/DATABASE, or sqlite:PATH. A relative path counts from the folder of this file. No password here: write
# ${env:NAME} or ${file:PATH} in its place, or use PGPASSWORD or ~/.pgpass.
url = )";

constexpr std::string_view kRest = R"(
# Each subscription delivers the log to one destination, at its own position.
[subscription.orders]
sink = "file"                    # file, stdout, null or kafka
file.path = "orders.jsonl"       # one line of JSON per event
# event_types = ["Order*"]       # only these; all without it
# format = "json"                # raw (the payload as it is), or one envelope

# [subscription.everything]
# sink = "kafka"
# topic = "{aggregate_type|lower}.events"
# kafka.brokers = "kafka-1:9092,kafka-2:9092"

# [relay]
# lease = "15s"                  # another relay takes over from one that hangs after this time

# [log]
# format = "json"                # log lines on stderr as JSON
)";

void write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Failure(kError, path + ": " + std::strerror(errno), "is the disk full?");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

int init(const Context& context) {
  std::string url = "sqlite:shop.db";
  for (const config::Flag& flag : context.request(Subscriptions::unused).flags) {
    if (flag.path == "store.url") {
      url = flag.value;
    } else {
      throw Failure(kUsage, flag.flag + ": init does not take this setting",
                    "write it into the file");
    }
  }
  if (const Status status = store::check_url(url); !status)
    throw Failure(kUsage, "--store " + status.error().text());
  const std::string path = context.file_to_write();
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  if (fd < 0) {
    throw Failure(kError, path + ": " + std::strerror(errno),
                  errno == EEXIST ? "nothing was changed; -c FILE writes another"
                                  : "check the path and its permissions");
  }
  write_all(fd, std::string(kStore) + quote(url) + "\n" + std::string(kRest), path);
  close(fd);
  print("{} written; next: outbox config check, outbox migrate, outbox relay\n", path);
  return kOk;
}

}  // namespace

void add_init(CLI::App& root, Context& context) {
  CLI::App& verb = add_verb(root, "init", "Write a first configuration; never overwrites one",
                            [&context] { return init(context); });
  add_footer(verb, "Writes outbox.toml, or the file named with -c. --store URL is put into it.");
  add_example(verb, "outbox init --store sqlite:shop.db");
}

}  // namespace outbox::cli
