// Makes requests of messages: where to, which header fields, which body. Pure.
#pragma once

#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <vector>

#include "event/arena.hpp"
#include "sink/http/batch.hpp"
#include "sink/http/config.hpp"
#include "sink/http/headers.hpp"

namespace outbox::sink::http {

struct Request {
  std::string url;
  std::vector<Part> parts{};
  bool is_array{false};
  std::vector<std::string> headers{};  ///< "name: value", less those of each sending.
};

class Composer {
 public:
  explicit Composer(const HttpOptions& options);

  /// The request for the first of the messages, and as many after it as fit into the same one. An error is the fault of the first one,
  /// which is then the only one that was looked at. Not empty.
  [[nodiscard]] Result<Request> compose(std::span<const Message> messages);
  /// The header fields of one sending: id, time and signature of the body.
  [[nodiscard]] std::vector<std::string> stamp(const Request& request, std::string_view body,
                                               std::int64_t timestamp) const;

 private:
  [[nodiscard]] Result<Request> single(const Message& message);
  [[nodiscard]] Result<Request> array(std::span<const Message> messages);
  void add_own(std::vector<std::string>& lines) const;

  const HttpOptions& options_;
  const OwnHeaders own_;
  event::Arena arena_;
};

/// Two requests with a half of the parts each.
[[nodiscard]] std::pair<Request, Request> halves(Request whole);

}  // namespace outbox::sink::http
