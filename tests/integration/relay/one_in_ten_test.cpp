// Delivers a million events to a file and to all brokers at once.
#include "integration/relay/one_in_ten.hpp"

#include <unistd.h>

#include <memory>
#include <string>

#include "support/destination.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

class OneInTenToBrokers : public OneInTen {
 protected:
  void SetUp() override {
    RelayOnPostgres::SetUp();
    if (IsSkipped()) return;
    add_destination("file", "file:" + folder_.file("orders"));
#ifdef __SANITIZE_THREAD__
    missing_ = "kafka (the thread sanitizer knows no C11 threads, and librdkafka starts such)";
#else
    add_broker("kafka", "OUTBOX_TEST_KAFKA");
#endif
    add_broker("redis", "OUTBOX_TEST_REDIS");
    add_broker("nats", "OUTBOX_TEST_NATS");
    add_broker("rabbitmq", "OUTBOX_TEST_RABBITMQ");
  }
  void add_broker(const std::string& kind, const char* variable) {
    if (const auto url = environment(variable)) {
      add_destination(kind, kind + ":outbox-one-in-ten-" + std::to_string(::getpid()) + "@" + *url);
    } else {
      missing_ += (missing_.empty() ? "" : ", ") + kind + " (" + variable + " is not set)";
    }
  }
  void add_destination(const std::string& name, const std::string& where) {
    const std::shared_ptr<Destination> destination = make_destination(where);
    destination->open();
    add(destination->subscription(name), [destination](const Destination::Each& each) {
      destination->read(each, std::chrono::milliseconds(100));
    });
  }

  const TempDir folder_;
  std::string missing_;
};

TEST_F(OneInTenToBrokers, of_a_million_events_arrives_whole_and_in_order) {
  constexpr long kMostMiB = 128;  // including the clients of all brokers
  expect_one_in_ten(1'000'000, kMostMiB);
  if (!missing_.empty()) GTEST_SKIP() << "all but: " << missing_;
}

}  // namespace
}  // namespace outbox::test
