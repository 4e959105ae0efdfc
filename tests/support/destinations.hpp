// The destinations by kind, for make_destination() only.
#pragma once

#include <memory>
#include <string>

#include "support/destination.hpp"

namespace outbox::test {

[[nodiscard]] std::unique_ptr<Destination> kafka_destination(const std::string& topic,
                                                             const std::string& brokers);
[[nodiscard]] std::unique_ptr<Destination> redis_destination(const std::string& stream,
                                                             const std::string& url);
[[nodiscard]] std::unique_ptr<Destination> nats_destination(const std::string& stream,
                                                            const std::string& url);
[[nodiscard]] std::unique_ptr<Destination> rabbitmq_destination(const std::string& queue,
                                                                const std::string& url);
[[nodiscard]] std::unique_ptr<Destination> rabbitmq_stream_destination(const std::string& queue,
                                                                       const std::string& url);

}  // namespace outbox::test
