// Tests the server with real sockets: what clients get, and what clients that misbehave cannot do.
#include "http/server.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace outbox::http {
namespace {

class Client {
 public:
  explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client& operator=(Client&&) = delete;
  ~Client() {
    if (fd_ >= 0) ::close(fd_);
  }

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;  // The server has closed the connection.
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  /// Everything until the server closes the connection.
  [[nodiscard]] std::string read_all() const {
    std::string all;
    std::array<char, 4096> bytes{};
    for (ssize_t count = 0; (count = ::recv(fd_, bytes.data(), bytes.size(), 0)) > 0;)
      all.append(bytes.data(), static_cast<std::size_t>(count));
    return all;
  }

 private:
  int fd_;
};

class HttpServer : public testing::Test {
 protected:
  void start(const ServerOptions& options = {}) {
    auto server = Server::start({.host = "127.0.0.1", .port = 0}, options, [this](auto& routes) {
      routes.Get("/hello", [](const httplib::Request&, httplib::Response& response) {
        response.set_content("hello", "text/plain");
      });
      routes.Get("/large", [](const httplib::Request&, httplib::Response& response) {
        response.set_content(std::string(std::size_t{8} << 20U, 'x'), "text/plain");
      });
      routes.Get("/throws", [](const httplib::Request&, httplib::Response&) {
        throw std::runtime_error("secret");
      });
      routes.Get("/hangs", [this](const httplib::Request&, httplib::Response&) {
        begun_.count_down();
        released_.wait();
      });
      routes.Post("/echo", [](const httplib::Request& request, httplib::Response& response) {
        response.set_content(request.body, "text/plain");
      });
    });
    ASSERT_TRUE(server) << server.error().text();
    server_ = std::move(*server);
  }
  [[nodiscard]] int port() const { return server_->address().port; }
  [[nodiscard]] std::string get(const std::string& path) const {
    const Client client(port());
    client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return client.read_all();
  }

  std::latch begun_{1};
  std::latch released_{1};
  std::unique_ptr<Server> server_;
};

TEST_F(HttpServer, answers) {
  start();
  const std::string answer = get("/hello");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nhello")) << answer;
  EXPECT_TRUE(get("/nothing").starts_with("HTTP/1.1 404"));
}

TEST_F(HttpServer, a_handler_that_throws_tells_the_client_nothing) {
  start();
  const std::string answer = get("/throws");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500")) << answer;
}

TEST_F(HttpServer, a_connection_serves_one_request_after_the_other) {
  start();
  httplib::Client client("127.0.0.1", port());
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);
  for (int i = 0; i < 20; ++i) {
    const auto answer = client.Post("/echo", std::to_string(i), "text/plain");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, std::to_string(i));
  }
}

TEST_F(HttpServer, requests_that_come_together_are_answered_in_turn) {
  start();
  const Client client(port());
  client.send(
      "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string both = client.read_all();
  EXPECT_LT(both.find("200 OK"), both.find("404 Not Found")) << both;
  EXPECT_NE(both.find("404 Not Found"), std::string::npos);
}

TEST_F(HttpServer, what_is_no_request_is_refused) {
  start();
  for (const auto& [request, status] : std::vector<std::pair<std::string, std::string>>{
           {"\r\n\r\n", "400"},
           {"nonsense\r\n\r\n", "400"},
           {std::string("\x16\x03\x01\x02\x00\r\n\r\n", 9), "400"},
           {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "411"},
           {"POST /echo HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n", "413"},
           {"GET /" + std::string(20000, 'a') + " HTTP/1.1\r\n\r\n", "431"}}) {
    const Client client(port());
    client.send(request);
    const std::string answer = client.read_all();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + status)) << request.substr(0, 40) << answer;
  }
  EXPECT_TRUE(get("/hello").ends_with("hello"));
}

/// A slow client holds a connection and a few bytes, and nothing that others need.
TEST_F(HttpServer, slow_clients_hold_up_nobody) {
  start({.connections = 256, .threads = 1});
  std::vector<Client> slow;
  for (int i = 0; i < 200; ++i) {
    slow.emplace_back(port());
    slow.back().send("GET /hello HTTP/1.1\r\nA");
  }
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(get("/hello").ends_with("hello"));
  for (const Client& client : slow) client.send(": b\r\nConnection: close\r\n\r\n");
  for (const Client& client : slow) EXPECT_TRUE(client.read_all().ends_with("hello"));
}

TEST_F(HttpServer, a_client_that_does_not_read_its_response_holds_up_nobody) {
  start({.threads = 1});
  std::vector<Client> slow;
  for (int i = 0; i < 4; ++i) {
    slow.emplace_back(port());
    slow.back().send("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n");
  }
  EXPECT_TRUE(get("/hello").ends_with("hello"));
  EXPECT_GT(slow.front().read_all().size(), std::size_t{8} << 20U);
}

TEST_F(HttpServer, what_waits_for_slow_readers_is_bounded) {
  start({.buffered_bytes = std::size_t{20} << 20U, .threads = 1});
  std::vector<Client> slow;
  for (int i = 0; i < 8; ++i) {
    slow.emplace_back(port());
    slow.back().send("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n");
  }
  EXPECT_TRUE(get("/hello").ends_with("hello"));
  std::size_t complete = 0;
  for (const Client& client : slow) complete += client.read_all().size() > std::size_t{8} << 20U;
  EXPECT_GT(complete, 0U);
  EXPECT_LT(complete, slow.size());
}

TEST_F(HttpServer, a_request_that_does_not_end_in_time_is_given_up) {
  start({.exchange = std::chrono::milliseconds(50)});
  const Client client(port());
  client.send("GET /hello HTTP/1.1\r\nA");
  EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 408"));
}

TEST_F(HttpServer, a_connection_without_a_request_is_closed_in_time) {
  start({.idle = std::chrono::milliseconds(50)});
  const Client client(port());
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(HttpServer, more_connections_than_allowed_are_refused) {
  start({.connections = 2});
  const Client one(port());
  const Client two(port());
  const Client three(port());
  EXPECT_TRUE(three.read_all().starts_with("HTTP/1.1 503"));
}

TEST_F(HttpServer, a_client_that_leaves_costs_nothing) {
  start({.threads = 1});
  {
    const Client client(port());
    client.send("GET /hangs HTTP/1.1\r\n\r\n");
    begun_.wait();
  }
  released_.count_down();
  EXPECT_TRUE(get("/hello").ends_with("hello"));
}

TEST_F(HttpServer, an_address_that_is_taken_is_named) {
  start();
  const auto second =
      Server::start({.host = "127.0.0.1", .port = port()}, {}, [](httplib::Server&) {});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(std::to_string(port())), std::string::npos);
  EXPECT_FALSE(second.error().hint.empty());
}

TEST_F(HttpServer, many_clients_at_once_get_their_own_answers) {
  start();
  std::atomic<int> wrong{0};
  std::vector<std::jthread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      httplib::Client client("127.0.0.1", port());
      client.set_keep_alive(true);
      client.set_tcp_nodelay(true);
      for (int n = 0; n < 200; ++n) {
        const std::string text = std::to_string(i * 1000 + n);
        const auto answer = client.Post("/echo", text, "text/plain");
        if (!answer || answer->body != text) ++wrong;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace outbox::http
