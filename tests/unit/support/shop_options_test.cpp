#include "support/shop_options.hpp"

#include <gtest/gtest.h>

#include <outbox/event.hpp>

namespace outbox::test {
namespace {

TEST(Bodies, are_as_jsonb_prints_them_and_give_their_id_back) {
  const std::string id = EventId::generate().str();
  const std::string body = make_body(id, "k1", 12, 2);
  EXPECT_EQ(body, R"({"id": ")" + id + R"(", "key": "k1", "pad": "xx", "version": 12})");
  EXPECT_EQ(id_in(body), id);
  EXPECT_EQ(id_in("{}"), "");
}

}  // namespace
}  // namespace outbox::test
