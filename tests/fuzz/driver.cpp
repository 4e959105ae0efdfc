// Runs a target without libFuzzer: every file of its corpus, then changed copies of them from a
// fixed seed, so that a failure comes again. The input that ends the process is written to a file,
// to be kept in the corpus.
//
//   fuzz_snapshot CORPUS RUNS       OUTBOX_FUZZ_SEED, OUTBOX_FUZZ_RUNS: others than in the test
//   fuzz_snapshot FILE              one input
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "support/random.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

using outbox::test::Random;

/// After this time an input counts as a hang. No parser needs so long for one.
constexpr unsigned kHangSeconds = 60;
constexpr std::size_t kLongestInput = std::size_t{16} << 10U;

std::string
    current;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): for the signal handler
std::string crash_file;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void keep_input() {
  const int file = open(crash_file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return;
  const bool kept =
      write(file, current.data(), current.size()) == static_cast<ssize_t>(current.size());
  close(file);
  constexpr std::string_view said = "the input is in ";
  if (kept && write(STDERR_FILENO, said.data(), said.size()) > 0 &&
      write(STDERR_FILENO, crash_file.data(), crash_file.size()) > 0)
    (void)!write(STDERR_FILENO, "\n", 1);
}

void on_signal(int signal) {
  keep_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void watch_for_crashes(const std::string& name) {
  crash_file = (std::filesystem::current_path() / ("crash-" + name)).string();
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(keep_input);
  constexpr std::array signals{SIGABRT, SIGALRM};
#else
  constexpr std::array signals{SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#endif
  for (const int signal : signals) std::signal(signal, on_signal);
}

void run(std::string input) {
  current = std::move(input);
  alarm(kHangSeconds);
  // The input has a block of its own, so that a read beyond its end is seen.
  const std::vector<std::uint8_t> bytes(current.begin(), current.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::vector<std::string> read_corpus(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      files.push_back(entry.path());
  } else {
    files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return inputs;
}

/// A piece of a random input, at most `longest` bytes.
std::string piece(Random& random, const std::vector<std::string>& inputs, std::size_t longest) {
  const std::string& from = inputs[random.below(inputs.size())];
  if (from.empty()) return {};
  return from.substr(random.below(from.size()), 1 + random.below(longest));
}

char odd_byte(Random& random) {
  using std::string_view_literals::operator""sv;
  constexpr auto odd = "\0\n\r\t \"'\\{}[],:;=%&~|$0919-+.E\x7f\x80\xff\xc2\xed"sv;
  return random.chance(70) ? odd[random.below(odd.size())] : static_cast<char>(random.next());
}

void change(std::string& input, Random& random, const std::vector<std::string>& inputs) {
  const std::size_t at = random.below(input.size() + 1);
  const std::size_t length =
      std::min(input.size() - at, 1 + random.below(random.chance(90) ? 8 : 256));
  switch (random.below(7)) {
    case 0: input.insert(at, 1, odd_byte(random)); break;
    case 1: input.erase(at, length); break;
    case 2: input.insert(at, piece(random, inputs, 64)); break;
    case 3: input.replace(at, length, piece(random, inputs, 16)); break;
    case 4:
      input.insert(at,
                   std::string(1 + random.below(random.chance(90) ? 8 : 3000), odd_byte(random)));
      break;
    case 5: input.resize(at); break;
    default:
      if (at < input.size())
        input[at] = random.chance(50) ? odd_byte(random)
                                      : static_cast<char>(input[at] ^ (1 << random.below(8)));
  }
}

std::uint64_t read_number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [RUNS]\n", argv[0]);
    return 2;
  }
  watch_for_crashes(std::filesystem::path(argv[0]).filename().string());
  const auto inputs = read_corpus(argv[1]);
  if (inputs.empty()) {
    std::fprintf(stderr, "%s: no inputs\n", argv[1]);
    return 2;
  }
  for (const auto& input : inputs) run(input);
  const auto runs =
      argc < 3 ? 0 : read_number("OUTBOX_FUZZ_RUNS", std::strtoull(argv[2], nullptr, 10));
  Random random(read_number("OUTBOX_FUZZ_SEED", 1));
  for (std::uint64_t i = 0; i < runs; ++i) {
    std::string input = inputs[random.below(inputs.size())];
    for (std::uint64_t changes = 1 + random.below(6); changes > 0; --changes)
      change(input, random, inputs);
    input.resize(std::min(input.size(), kLongestInput));
    run(std::move(input));
  }
  std::printf("%zu inputs of the corpus, %llu changed ones\n", inputs.size(),
              static_cast<unsigned long long>(runs));
  return 0;
}
