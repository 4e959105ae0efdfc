// Makes src/testkit visible in the namespace of the tests. Its clients of servers are included where they are used.
#pragma once

#include "testkit/child_process.hpp"
#include "testkit/eventually.hpp"
#include "testkit/failure.hpp"
#include "testkit/temp_dir.hpp"

namespace outbox::test {
using namespace testkit;
}  // namespace outbox::test
