// Connections that are used again by stores that are opened later.
#include "store/kept_connections.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/steady.hpp"

namespace outbox::store {
namespace {

/// Tells when it is closed.
class Named final : public KeptConnections::Item {
 public:
  explicit Named(int number, std::promise<void>* closed = nullptr)
      : number_(number), closed_(closed) {}
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  Named(Named&&) = delete;
  Named& operator=(Named&&) = delete;
  ~Named() override {
    if (closed_ != nullptr) closed_->set_value();
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
  std::promise<void>* closed_;
};

void give(KeptConnections& kept, const std::string& address, int number,
          KeptConnections::Time opened = now_steady()) {
  kept.give(address, {.item = std::make_unique<Named>(number), .opened = opened});
}

int take(KeptConnections& kept, const std::string& address) {
  const auto taken = kept.take(address);
  return taken.item == nullptr ? 0 : static_cast<const Named&>(*taken.item).number();
}

TEST(KeptConnections, are_taken_by_their_address_the_last_one_first) {
  KeptConnections kept;
  give(kept, "a", 1);
  give(kept, "b", 2);
  give(kept, "a", 3);
  EXPECT_EQ(take(kept, "a"), 3);
  EXPECT_EQ(take(kept, "a"), 1);
  EXPECT_EQ(take(kept, "a"), 0);
  EXPECT_EQ(take(kept, "b"), 2);
}

TEST(KeptConnections, old_ones_and_many_are_not_kept) {
  KeptConnections kept(std::chrono::seconds(60), std::chrono::seconds(10));
  give(kept, "a", 1, now_steady() - std::chrono::seconds(11));
  EXPECT_EQ(take(kept, "a"), 0);
  for (int i = 1; i <= 100; ++i) give(kept, "a", i);
  EXPECT_EQ(take(kept, "a"), 16);
}

TEST(KeptConnections, one_that_nobody_takes_is_closed) {
  std::promise<void> closed;
  KeptConnections kept(std::chrono::seconds(0));
  kept.give("a", {.item = std::make_unique<Named>(1, &closed), .opened = now_steady()});
  closed.get_future().wait();
}

TEST(KeptConnections, are_used_by_the_thread_that_says_so) {
  EXPECT_EQ(KeptConnections::of_thread(), nullptr);
  KeptConnections kept;
  {
    const KeptConnections::Use use(kept);
    EXPECT_EQ(KeptConnections::of_thread(), &kept);
    std::jthread([] { EXPECT_EQ(KeptConnections::of_thread(), nullptr); }).join();
  }
  EXPECT_EQ(KeptConnections::of_thread(), nullptr);
}

}  // namespace
}  // namespace outbox::store
