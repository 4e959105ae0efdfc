#include "cli/watch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "base/signals.hpp"
#include "base/thread.hpp"
#include "base/units.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "event/time_text.hpp"
#include "store/kept_connections.hpp"

namespace outbox::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// How long an end waits for a store that does not answer.
constexpr std::chrono::milliseconds kPatience{1000};

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// At most `columns` characters of a line. What sets a colour has no width.
std::string clipped(std::string_view line, std::size_t columns) {
  std::string out;
  std::size_t width = 0;
  bool code = false;
  for (const char c : line) {
    if (c == '\x1b') code = true;
    const bool continues = (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
    if (!code && !continues && ++width > columns) break;
    out += c;
    if (code && c == 'm') code = false;
  }
  return out.find('\x1b') == std::string::npos ? out : out + "\x1b[0m";
}

/// Shows the terminal's second page, so that the first one is there again at the end. Keys are read
/// without being shown.
class Screen {
 public:
  Screen() {
    keys_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (keys_) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      raw.c_cc[VMIN] = 0;
      raw.c_cc[VTIME] = 0;
      raw.c_cc[VSUSP] =
          _POSIX_VDISABLE;  // a suspended watch would leave the second page to the shell
      keys_ = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
    write_all("\x1b[?1049h\x1b[?25l\x1b[?7l");  // second page, no cursor, no line breaks
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { leave(); }

  /// Any thread may call it.
  void leave() const noexcept {
    write_all("\x1b[?7h\x1b[?25h\x1b[?1049l");
    if (keys_) (void)tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  [[nodiscard]] bool has_keys() const noexcept { return keys_; }

  /// Overwrites each line, and only then removes what is left of the one before, so that nothing
  /// flickers.
  void draw(const std::string& title, std::string_view text) const {
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
    const std::size_t rows = known ? size.ws_row : 24;
    const std::size_t columns = known && size.ws_col > 0 ? size.ws_col : 80;
    while (text.ends_with('\n')) text.remove_suffix(1);
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    const std::size_t room = rows > 3 ? rows - 2 : 1;
    const std::size_t shown = lines <= room ? lines : room - 1;
    std::string out = "\x1b[H" + clipped(title, columns) + "\x1b[K\r\n\x1b[K";
    for (std::size_t i = 0; i < shown; ++i) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out += "\r\n" + clipped(text.substr(0, end), columns) + "\x1b[K";
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (shown < lines)
      out += clipped(fmt::format("\r\n... {} more lines", lines - shown), columns) + "\x1b[K";
    write_all(out + "\x1b[J");
  }

 private:
  termios before_{};
  bool keys_{false};
};

/// Ends the process if a signal asks for it and the store does not answer. This loses nothing,
/// since nothing is written to the store.
class Guard {
 public:
  explicit Guard(const Signals& signals) : done_(event_fd()) {
    thread_ = start_thread("ob-watch", [this, asked = signals.fd()](const std::stop_token&) {
      std::array<pollfd, 2> fds{{{.fd = done_.fd(), .events = POLLIN, .revents = 0},
                                 {.fd = asked, .events = POLLIN, .revents = 0}}};
      while (poll(fds.data(), fds.size(), -1) < 0) {
      }
      if (fds[0].revents == 0 && poll(fds.data(), 1, static_cast<int>(kPatience.count())) == 0) {
        if (const Screen* const shown = screen_.load(); shown != nullptr) shown->leave();
        std::_Exit(kOk);
      }
    });
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { done_.signal(); }

  void knows(const Screen& screen) noexcept { screen_.store(&screen); }

 private:
  static EventFd event_fd() {
    auto made = EventFd::create();
    OUTBOX_CHECK(made.has_value());
    return std::move(*made);
  }

  EventFd done_;
  std::atomic<const Screen*> screen_{nullptr};
  std::jthread thread_;
};

/// Whether a key was typed that ends the watch.
bool reads_end(bool& keys) {
  std::array<char, 64> typed{};
  const ssize_t count = read(STDIN_FILENO, typed.data(), typed.size());
  if (count <= 0) keys = false;
  return std::any_of(typed.begin(), typed.begin() + std::max<ssize_t>(count, 0),
                     [](char key) { return key == 'q' || key == 'Q' || key == '\x03'; });
}

/// Waits until `until`. Returns true if the watch is over, by a signal, by a key, or because the
/// reader of stdout left.
bool is_over_before(Clock::time_point until, const Signals& signals, bool& keys) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (signals.asked()) return true;
    if (left.count() <= 0) return false;
    std::array<pollfd, 3> fds{{{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                               {.fd = STDOUT_FILENO, .events = 0, .revents = 0},
                               {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
    if (poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0) continue;
    if (fds[0].revents != 0 || (fds[1].revents & (POLLERR | POLLHUP)) != 0) return true;
    if (fds[2].revents != 0 && reads_end(keys)) return true;
  }
}

}  // namespace

std::string time_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return event::time_text(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

void watch(const WatchOptions& options, const std::function<void()>& show) {
  const bool on_screen = !options.lines_only && is_screen(STDOUT_FILENO);
  Signals signals(kOk);
  signals.end_at(0);  // the guard ends the process
  std::optional<Screen> screen;
  Guard guard(signals);
  store::KeptConnections kept;
  const store::KeptConnections::Use use(kept);
  bool keys = false;
  bool first = true;
  while (true) {
    const auto next = Clock::now() + options.interval;
    std::string text;
    {
      const Capture capture(text);
      show();
    }
    if (signals.asked()) return;
    if (on_screen) {
      if (!screen) {
        keys = screen.emplace().has_keys();
        guard.knows(*screen);
      }
      screen->draw(fmt::format("{}   every {}   {}   q ends it", options.title,
                               format_duration(options.interval), time_now()),
                   text);
    } else {
      if (!options.lines_only) print("{}{}\n", first ? "" : "\n", time_now());
      write_out(text);
      if (!flush_out()) return;  // run_program() says why, unless the reader left
    }
    first = false;
    if (is_over_before(next, signals, keys)) return;
  }
}

}  // namespace outbox::cli
