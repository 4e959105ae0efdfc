// The server of `outbox console`: an API that does what the verbs of the command line do, and the
// page that uses it (docs/design/console.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "console/api.hpp"
#include "console/browser.hpp"
#include "http/server.hpp"

namespace httplib {
struct Response;
}

namespace outbox::console {

struct ConsoleOptions {
  http::Address address;
  std::vector<std::string> hosts{};  ///< Other names under which the console is called.
  std::string version{};
  std::string store{};  ///< Where the store is, without a password.
  /// Carries a verb out, for the person of this name. Called by several threads.
  std::function<Outcome(const std::vector<std::string>& words, const std::string& person)>
      execute{};
};

class Console {
 public:
  /// Listens until it is destroyed. Refuses an address that other machines can reach.
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
  [[nodiscard]] Answer answer_session() const;
  void answer_live(const std::string& last, httplib::Response& response);
  [[nodiscard]] Answer answer_api(const ApiRequest& request);
  [[nodiscard]] Answer call(const Call& called);
  [[nodiscard]] Status look();

  const ConsoleOptions options_;
  const Hosts hosts_;
  Mutex mutex_;
  Status status_ OUTBOX_GUARDED_BY(mutex_);
  bool looking_ OUTBOX_GUARDED_BY(mutex_){false};
  std::unique_ptr<http::Server> server_;  ///< The last, since its threads use the others.
};

}  // namespace outbox::console
