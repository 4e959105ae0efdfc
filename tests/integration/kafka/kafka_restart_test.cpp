#include <gtest/gtest.h>
TEST(X, y) {}
