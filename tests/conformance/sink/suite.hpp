// The suite of outbox/sink_conformance.hpp, which every sink passes, in our tests' namespace.
#pragma once

#include <outbox/sink_conformance.hpp>

#include "testing/sink_conformance/mini_relay.hpp"

namespace outbox::test {

using namespace conformance;  // NOLINT(google-build-using-namespace): of this project, for tests

}  // namespace outbox::test
