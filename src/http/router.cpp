#include "http/router.hpp"

#include <httplib.h>

#include <algorithm>
#include <cstring>

namespace outbox::http {
namespace {

class TextStream final : public httplib::Stream {
 public:
  TextStream(const std::string& request, const std::string& peer) : in_(request), peer_(peer) {}

  bool is_readable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t count = std::min(size, in_.size() - read_);
    std::memcpy(to, in_.data() + read_, count);
    read_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    out.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = peer_;
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  // Each version of cpp-httplib has some of these.
  virtual bool is_writable() const { return true; }
  virtual bool wait_readable() const { return true; }
  virtual bool wait_writable() const { return true; }
  virtual time_t duration() const { return 0; }
  socket_t socket() const override { return INVALID_SOCKET; }

  std::string out;

 private:
  const std::string& in_;
  const std::string& peer_;
  std::size_t read_{0};
};

}  // namespace

class Router::Engine final : public httplib::Server {
 public:
  bool answer(TextStream& stream, const std::string& peer, bool& closed) {
    return process(*this, stream, peer, closed);
  }

 private:
  /// Debian 12 has 0.11; later versions want the addresses as arguments.
  template <class Self>
  static bool process(Self& self, TextStream& stream, const std::string& peer, bool& closed) {
    if constexpr (requires { self.process_request(stream, false, closed, nullptr); })
      return self.process_request(stream, false, closed, nullptr);
    else
      return self.process_request(stream, peer, 0, peer, 0, false, closed, nullptr);
  }
};

Router::Router(const std::function<void(httplib::Server& server)>& add_routes)
    : engine_(std::make_unique<Engine>()) {
  add_routes(*engine_);
}

Router::~Router() = default;

Response Router::answer(const std::string& request, const std::string& peer) {
  TextStream stream(request, peer);
  bool closed = false;
  const bool answered = engine_->answer(stream, peer, closed);
  if (stream.out.empty()) return {.bytes = refusal(400), .closes = true};
  // After what is no request nobody knows where the next one begins.
  const bool no_request = stream.out.starts_with("HTTP/1.1 400");
  return {.bytes = std::move(stream.out), .closes = closed || !answered || no_request};
}

std::string refusal(int status) {
  const auto reason = [status] {
    switch (status) {
      case 408: return "Request Timeout";
      case 411: return "Length Required";
      case 413: return "Content Too Large";
      case 431: return "Request Header Fields Too Large";
      case 503: return "Service Unavailable";
      default: return "Bad Request";
    }
  };
  return "HTTP/1.1 " + std::to_string(status) + " " + reason() +
         "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
}

}  // namespace outbox::http
