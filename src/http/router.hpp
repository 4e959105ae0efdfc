// cpp-httplib's request parser, routes and response writer, without its sockets and threads: the
// request and the response are texts.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace httplib {
class Server;
}

namespace outbox::http {

struct Response {
  std::string bytes;
  bool closes{false};  ///< The connection must be closed when the bytes are written.
};

/// Any thread once it is made; handlers may be called by several threads at once.
class Router {
 public:
  /// `add_routes` gives handlers to cpp-httplib's server.
  explicit Router(const std::function<void(httplib::Server& server)>& add_routes);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  Router(Router&&) = delete;
  Router& operator=(Router&&) = delete;
  ~Router();

  /// `peer`: the address of the client, for handlers that want to know it.
  [[nodiscard]] Response answer(const std::string& request, const std::string& peer);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

/// A response of which no handler knows: the request was refused before it was read. The connection
/// is closed after it.
[[nodiscard]] std::string refusal(int status);

}  // namespace outbox::http
