// Turns requests into easy handles of libcurl, and their ends into answers.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "sink/curl/guarded_connect.hpp"
#include "sink/curl/handles.hpp"
#include "sink/http/answer.hpp"
#include "sink/http/config.hpp"
#include "sink/http/request.hpp"

namespace outbox::sink::http {

/// A request under way, with everything that its handle points to. Stays in place until that is back.
struct Exchange {
  Request request;
  std::string array;  ///< The body, if it is one.
  curl::List headers;
  curl::GuardedConnect connect;
  std::array<char, CURL_ERROR_SIZE> curl_text{};
  std::string answer;  ///< The body that came back, up to a limit.
  bool longer{false};  ///< There was more.
};

class Client {
 public:
  explicit Client(const HttpOptions& options);

  /// `stamp`: further header fields.
  [[nodiscard]] curl::Easy prepare(Exchange& exchange, const std::vector<std::string>& stamp) const;
  [[nodiscard]] static std::string_view body_of(Exchange& exchange);
  [[nodiscard]] static Answer answer_of(Exchange& exchange, CURL* easy, CURLcode code);
  /// Connects, with TLS where the URL says so, and sends nothing. Takes as long as connect_timeout at most.
  [[nodiscard]] Answer connect() const;

 private:
  [[nodiscard]] curl::Easy handle_for(Exchange& exchange, const std::string& url) const;
  void set_identity();

  const HttpOptions& options_;
  const curl::Guard* const guard_;
  const curl::Easy prototype_;
};

}  // namespace outbox::sink::http
