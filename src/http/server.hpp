// An HTTP/1.1 server for a few clients of which none is trusted (docs/design/http.md). One thread
// does all input and output and never waits for a client; a handler is called when the whole
// request is there, by one of a few threads. So clients that send or read slowly hold back neither
// handlers nor other clients, and memory is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>

#include "http/address.hpp"
#include "http/request_reader.hpp"
#include "http/tls.hpp"

namespace httplib {
class Server;
}

namespace outbox::http {

struct ServerOptions {
  RequestLimits request{};
  /// A new connection beyond this many is answered with 503.
  std::size_t connections{256};
  /// Bytes of requests and responses that all connections together may hold. Beyond it the one that
  /// holds most is closed.
  std::size_t buffered_bytes{std::size_t{64} << 20U};
  /// From its first byte, a request must be complete within this time; a response must be taken
  /// within it.
  std::chrono::milliseconds exchange{std::chrono::seconds(10)};
  /// A connection without a request is closed after this time.
  std::chrono::milliseconds idle{std::chrono::seconds(60)};
  std::size_t threads{2};                    ///< The threads that call handlers.
  std::optional<Certificate> certificate{};  ///< Connections have TLS.
};

class Server {
 public:
  /// Listens and answers until it is destroyed, which waits for running handlers. `add_routes`
  /// gives handlers to cpp-httplib's server; several threads may call a handler at once. Fails if
  /// the address cannot be listened on, or the certificate cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(
      const Address& address, const ServerOptions& options,
      const std::function<void(httplib::Server& server)>& add_routes);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;
  ~Server();

  /// Where it listens, with the port that was chosen.
  [[nodiscard]] const Address& address() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outbox::http
