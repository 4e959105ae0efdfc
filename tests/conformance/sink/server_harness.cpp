#include "conformance/sink/server_harness.hpp"

#include "conformance/sink/making.hpp"

namespace outbox::test {

std::unique_ptr<Sink> ServerHarness::make(const SinkSettings& settings) const {
  return make_sink(make_spec(sink(), settings));
}

}  // namespace outbox::test
