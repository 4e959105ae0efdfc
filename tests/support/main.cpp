// This main is like that of gtest, but if every test was skipped it returns 77, which ctest shows
// as skipped.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  if (failed != 0) return failed;
  const auto& unit = *::testing::UnitTest::GetInstance();
  return unit.skipped_test_count() > 0 && unit.skipped_test_count() == unit.test_to_run_count() ? 77
                                                                                                : 0;
}
