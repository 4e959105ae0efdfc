// Ports for private servers.
#pragma once

namespace outbox::test {

/// An unused port of the loopback interface.
[[nodiscard]] int free_port();

}  // namespace outbox::test
