// outbox man: writes the manual pages.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/count.hpp"
#include "cli/exit.hpp"
#include "cli/man_page.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"

namespace outbox::cli {
namespace {

namespace fs = std::filesystem;

/// Today, or the day of SOURCE_DATE_EPOCH, so that a package can be built again byte for byte.
std::string date() {
  std::time_t now = std::time(nullptr);
  if (const char* const given = std::getenv("SOURCE_DATE_EPOCH");
      given != nullptr && *given != '\0') {
    char* end = nullptr;
    now = static_cast<std::time_t>(std::strtoll(given, &end, 10));
    if (*end != '\0' || now < 0)
      throw Failure(kUsage, "SOURCE_DATE_EPOCH is not a number of seconds",
                    "unset it, or: date +%s");
  }
  std::tm day{};
  if (gmtime_r(&now, &day) == nullptr)
    throw Failure(kUsage, "SOURCE_DATE_EPOCH is too large", "unset it, or: date +%s");
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &day)};
}

void write_page(const fs::path& path, const std::string& page) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << page;
  file.close();
  if (!file)
    throw Failure(kError, plain(path.string()) + ": " + std::strerror(errno == 0 ? EIO : errno),
                  "check the folder and its permissions; it is not complete");
}

int man(const CLI::App& root, const std::string& folder) {
  const VerbDefinition program = definitions(root);
  const std::string day = date();
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Failure(kError, plain(folder) + ": " + failed.message(),
                  "name a folder that you may write to");
  write_page(fs::path(folder) / "outbox.1", program_page(program, day));
  for (const VerbDefinition& verb : program.verbs)
    write_page(fs::path(folder) / ("outbox-" + verb.name + ".1"), verb_page(verb, day));
  print("{} written to {}\n", count("page", program.verbs.size() + 1), plain(folder));
  return kOk;
}

}  // namespace

void add_man(CLI::App& root, Context& /*context*/) {
  auto folder = std::make_shared<std::string>();
  CLI::App& verb = add_verb(root, "man", "Write the manual pages",
                            [&root, folder] { return man(root, *folder); });
  add_argument(verb, "DIR", folder.get(), "Where to: outbox.1, and outbox-VERB.1 for each verb");
  add_footer(
      verb,
      "Makes the folder if there is none, and overwrites pages that are there. SOURCE_DATE_EPOCH sets their date.");
  add_example(verb, "outbox man ~/.local/share/man/man1");
}

}  // namespace outbox::cli
