// Tests what a sink with a connection still tells when the connection is gone.
#include "sink/network_sink.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace outbox::sink {
namespace {

/// Its inspection needs the connection, as that of the sinks postgres and rabbitmq does.
class Fragile final : public ConnectionSink {
 public:
  explicit Fragile(std::string scheme) : ConnectionSink("fragile"), scheme_(std::move(scheme)) {}

  SinkTraits traits() const noexcept override { return {.name = "fragile"}; }
  Status open() override {
    connection_ = std::make_unique<std::string>(scheme_ + "://elsewhere");
    state_ = State::open;
    warn_about(inspection());
    return {};
  }
  Inspection inspection() const override {
    Inspection found{
        .destination = connection_->c_str(), .acked = "", .duplicates = "", .order = ""};
    if (connection_->starts_with("clear")) found.weaknesses.push_back(in_clear("use tls"));
    return found;
  }
  void purge() override {}
  void close() noexcept override { connection_.reset(); }

 private:
  void advance() override {}
  std::size_t take(std::span<const Message> /*messages*/) override { return 0; }

  const std::string scheme_;
  std::unique_ptr<std::string> connection_;
};

TEST(NetworkSink, says_after_its_connection_is_lost_whether_that_was_secure) {
  for (const auto& [scheme, insecure] : {std::pair("clear", true), std::pair("tls", false)}) {
    Fragile sink(scheme);
    EXPECT_FALSE(sink.is_insecure()) << "nothing was sent yet";
    ASSERT_TRUE(sink.open());
    EXPECT_EQ(sink.is_insecure(), insecure);
    sink.close();
    EXPECT_EQ(sink.is_insecure(), insecure);
  }
}

}  // namespace
}  // namespace outbox::sink
