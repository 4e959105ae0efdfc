// Acks everything and keeps nothing: for measurements, and to advance a subscription's cursor.
#pragma once

#include <outbox/sink.hpp>
#include <vector>

#include "sink/kind.hpp"

namespace outbox::sink {

class NullSink final : public Sink {
 public:
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "null", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override {}
  void close() noexcept override {}

 private:
  std::vector<Token> taken_;
};

[[nodiscard]] SinkKind null_kind();

}  // namespace outbox::sink
