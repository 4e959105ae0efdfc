// The suite that every sink passes, and users' sinks can (outbox/sink_conformance.hpp), under the names that our tests use.
#pragma once

#include <outbox/sink_conformance.hpp>

#include "testing/sink_conformance/mini_relay.hpp"

namespace outbox::test {

using namespace conformance;  // NOLINT(google-build-using-namespace): of this project, for tests

}  // namespace outbox::test
