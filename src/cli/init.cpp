// outbox init: writes a first configuration.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/setting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "sink/registry.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

constexpr std::string_view kStore =
    R"(# The configuration of outbox. `outbox config reference` lists all settings, `outbox config check` checks this file.

[store]
# postgresql://USER@HOST/DATABASE, or sqlite:PATH. A relative path counts from the folder of this file. No password here: write
# ${env:NAME} or ${file:PATH} in its place, or use PGPASSWORD or ~/.pgpass.
url = )";

constexpr std::string_view kKinds = R"(

# Each subscription delivers the log to one destination, at its own position. The kinds of destinations (sink) are
# )";

constexpr std::string_view kRest = R"(.
# `outbox config reference` lists the settings of each.
[subscription.orders]
sink = "file"
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

/// The kinds of sinks of this build, such as "null, stdout, file".
std::string kinds() {
  std::string text;
  for (const sink::SinkKind& kind : sink::kinds())
    text.append(text.empty() ? "" : ", ").append(kind.name);
  return text;
}

std::string template_with(const std::string& url) {
  return std::string(kStore) + quote(url) + std::string(kKinds) + kinds() + std::string(kRest);
}

/// A file that appears under its name when it is complete. Until then it has another name in the
/// same folder, and is removed if it is given up.
class NewFile {
 public:
  explicit NewFile(std::string path)
      : path_(std::move(path)),
        unfinished_(path_ + "." + EventId::generate().str() + ".tmp"),
        fd_(open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640)) {
    if (fd_ < 0) fail("check the path and its permissions");
  }
  ~NewFile() {
    if (fd_ >= 0) (void)close(fd_);
    (void)unlink(unfinished_.c_str());  // It is not there any more after publish().
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(fd_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("nothing was written; is the disk full?");
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  /// Fails if there is a file of this name, which stays as it is.
  void publish() {
    if (close(std::exchange(fd_, -1)) != 0) fail("nothing was written; is the disk full?");
    if (give_name()) return;
    fail(errno == EEXIST ? "nothing was changed; -c FILE writes another"
                         : "check the path and its permissions");
  }

 private:
  /// Some file systems, such as NFS, do not know RENAME_NOREPLACE, but have links.
  [[nodiscard]] bool give_name() const {
    const char* const from = unfinished_.c_str();
    const char* const to = path_.c_str();
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
    return (errno == EINVAL || errno == ENOSYS) && link(from, to) == 0;
  }
  [[noreturn]] void fail(const char* hint) const {
    throw Failure(kError, path_ + ": " + std::strerror(errno), hint);
  }

  const std::string path_;
  const std::string unfinished_;
  int fd_;
};

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
  NewFile file(path);
  file.write(template_with(url));
  file.publish();
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
