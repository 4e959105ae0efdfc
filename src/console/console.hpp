// The server of `outbox console`: an API that does what the verbs of the command line do, and the
// page that uses it (docs/design/console.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "console/access.hpp"
#include "console/api.hpp"
#include "console/authenticator.hpp"
#include "console/browser.hpp"
#include "http/server.hpp"

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace outbox::console {

struct ConsoleOptions {
  http::Address address;
  std::vector<std::string> hosts{};  ///< Other names under which the console is called.
  std::optional<http::Certificate> certificate{};
  /// A proxy in front of it has a certificate and passes on what it is asked.
  bool behind_tls_proxy{false};
  bool asks_for_tokens{false};  ///< Of this machine, too.
  std::string version{};
  std::string store{};  ///< Where the store is, without a password.
  /// Carries a verb out, for the person of this name. Called by several threads.
  std::function<Outcome(const std::vector<std::string>& words, const std::string& person)>
      execute{};
  /// Reads from the store who may use the console.
  std::function<Result<std::vector<KnownToken>>()> read_tokens{};
};

class Console {
 public:
  /// Listens until it is destroyed. Refuses an address that other machines can reach without TLS or
  /// without a token.
  [[nodiscard]] static Result<std::unique_ptr<Console>> start(ConsoleOptions options);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  Console(Console&&) = delete;
  Console& operator=(Console&&) = delete;
  ~Console() = default;

  [[nodiscard]] const http::Address& address() const { return server_->address(); }

 private:
  /// The document of GET /status, which all who look share for a second.
  struct Status {
    Answer answer{};
    std::uint64_t number{0};  ///< Of the look.
    std::chrono::steady_clock::time_point until{};
  };

  explicit Console(ConsoleOptions options);
  void add_routes(httplib::Server& server);
  void add_sessions(httplib::Server& server);
  void add_page(httplib::Server& server);
  [[nodiscard]] tl::expected<Person, Problem> identify(const httplib::Request& request);
  void log_in(const httplib::Request& request, httplib::Response& response);
  [[nodiscard]] Answer answer_session(const Person& person) const;
  void answer_live(const std::string& last, httplib::Response& response);
  [[nodiscard]] Answer answer_api(const ApiRequest& request, const Person& person);
  [[nodiscard]] Answer call(const Call& called, const Person& person);
  [[nodiscard]] Status look();

  const ConsoleOptions options_;
  const Hosts hosts_;
  const bool secure_;  ///< Browsers reach it with TLS.
  /// Not set if whoever can connect may do everything.
  std::optional<Authenticator> authenticator_;
  Mutex mutex_;
  Status status_ OUTBOX_GUARDED_BY(mutex_);
  bool looking_ OUTBOX_GUARDED_BY(mutex_){false};
  std::unique_ptr<http::Server> server_;  ///< The last, since its threads use the others.
};

}  // namespace outbox::console
