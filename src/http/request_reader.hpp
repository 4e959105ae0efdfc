// Collects the bytes of one HTTP request until it is complete, or is refused. It looks only at what
// decides where the request ends; cpp-httplib reads the rest (RFC 9112, sections 2, 3 and 6). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace outbox::http {

struct RequestLimits {
  std::size_t header_bytes{std::size_t{16} << 10U};
  std::size_t body_bytes{std::size_t{1} << 20U};
};

class RequestReader {
 public:
  explicit RequestReader(RequestLimits limits) : limits_(limits) {}

  /// Takes bytes as they come.
  void feed(std::string_view bytes);

  /// 0 while the request is neither complete nor refused; 200 when it is complete; otherwise the
  /// status with which it is refused, and the connection must be closed after it.
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] bool has_begun() const { return !bytes_.empty(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  /// The complete request. What came behind it stays for the next one.
  [[nodiscard]] std::string take();

 private:
  void read_head();
  void judge();

  const RequestLimits limits_;
  std::string bytes_;
  std::size_t head_{0};    ///< The size of the head, with its empty line; 0: it is not complete.
  std::size_t body_{0};    ///< The size of the body, from Content-Length.
  std::size_t looked_{0};  ///< The end of the head was looked for up to here.
  int status_{0};
};

}  // namespace outbox::http
