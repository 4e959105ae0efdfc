// Tests where a request ends, and which requests are refused before cpp-httplib sees them.
#include "http/request_reader.hpp"

#include <gtest/gtest.h>

namespace outbox::http {
namespace {

int status_of(std::string_view request, RequestLimits limits = {}) {
  RequestReader reader(limits);
  reader.feed(request);
  return reader.status();
}

TEST(RequestReader, a_request_is_complete_at_its_empty_line_however_it_comes) {
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(status_of(request), 200);
  RequestReader reader({});
  for (const char byte : request) {
    EXPECT_EQ(reader.status(), 0);
    reader.feed({&byte, 1});
  }
  EXPECT_EQ(reader.status(), 200);
  EXPECT_EQ(reader.take(), request);
  EXPECT_FALSE(reader.has_begun());
}

TEST(RequestReader, a_body_is_as_long_as_its_head_says) {
  RequestReader reader({});
  reader.feed("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhell");
  EXPECT_EQ(reader.status(), 0);
  reader.feed("oGET / HTTP/1.1\r\n\r\n");
  ASSERT_EQ(reader.status(), 200);
  EXPECT_TRUE(reader.take().ends_with("\r\n\r\nhello"));
  ASSERT_EQ(reader.status(), 200) << "the next request came with it";
  EXPECT_EQ(reader.take(), "GET / HTTP/1.1\r\n\r\n");
}

TEST(RequestReader, what_is_too_large_is_refused_as_soon_as_that_is_known) {
  const RequestLimits limits{.header_bytes = 100, .body_bytes = 10};
  EXPECT_EQ(status_of("GET /" + std::string(200, 'a'), limits), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + std::string(100, 'a') + "\r\n\r\n", limits), 431);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n", limits), 0);
}

/// A proxy in front could see another end of such a request.
TEST(RequestReader, a_request_whose_end_is_not_certain_is_refused) {
  const auto with = [](const std::string& lines) {
    return status_of("POST / HTTP/1.1\r\n" + lines + "\r\n\r\nhello");
  };
  EXPECT_EQ(with("Content-Length: 5\r\nContent-Length: 5"), 400);
  EXPECT_EQ(with("Content-Length: 5\r\ncontent-length: 6"), 400);
  EXPECT_EQ(with("Content-Length: 5, 5"), 400);
  EXPECT_EQ(with("Content-Length: +5"), 400);
  EXPECT_EQ(with("Content-Length: 0x5"), 400);
  EXPECT_EQ(with("Content-Length:"), 400);
  EXPECT_EQ(with("Content-Length : 5"), 400);
  EXPECT_EQ(with("Content-Length: 99999999999999999999"), 400);
  EXPECT_EQ(with("Transfer-Encoding: chunked"), 411);
  EXPECT_EQ(with("transfer-encoding: chunked\r\nContent-Length: 5"), 411);
  EXPECT_EQ(with("A: b\r\n c: d"), 400) << "a continued line";
  EXPECT_EQ(with("no colon"), 400);
  EXPECT_EQ(with(": empty"), 400);
  EXPECT_EQ(with("A: b\nContent-Length: 5"), 400) << "a line that ends with LF alone";
  EXPECT_EQ(with("A: b\rContent-Length: 5"), 400) << "a CR alone";
  EXPECT_EQ(with(std::string("A: b\0c", 6)), 400);
}

}  // namespace
}  // namespace outbox::http
