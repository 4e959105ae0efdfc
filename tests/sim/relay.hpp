// A relay with one strand. Random numbers instead of threads drive the decisions of src/relay.
#pragma once

#include <cstdint>
#include <vector>

#include "relay/delivery_core.hpp"
#include "relay/key_gate.hpp"
#include "relay/retry_core.hpp"
#include "relay/sink_state.hpp"
#include "relay/window.hpp"
#include "sim/environment.hpp"
#include "sim/sink.hpp"

namespace outbox::sim {

class SimRelay {
 public:
  /// Takes the lanes, and begins at the persisted cursor under a new generation. `before` is the
  /// run of the same process that lost its connection. What that run acked is remembered.
  explicit SimRelay(Environment& world, const SimRelay* before = nullptr);

  /// Takes one step of everything that the relay's threads do.
  void drive();
  /// The process dies.
  void crash() { sink.crash(); }
  /// The connection to the store breaks. What is in flight gets its outcome; what was being written
  /// may have been written, and the relay may have got the answer.
  void lose_store();

  relay::SinkState state;
  relay::Window window;
  relay::KeyGate gate;
  relay::DeliveryCore core;
  relay::RetryCore retries;
  SimSink sink;

 private:
  void read_page();
  void send();
  /// Returns false if the sink refuses the event by itself.
  bool hand_over(const relay::DeliveryCore::Send& send);
  void drive_retries();
  void take_outcomes();
  void write(bool hears_of_it);
  void park(const store::ParkedEvent& event);
  void write_results(bool hears_of_it);
  template <class Rows>
  void release_keys(const Rows& rows);
  [[nodiscard]] bool is_behind_another(const store::ParkedEvent& event) const;
  void check_attempts(const store::RetryResult& result);
  [[nodiscard]] bool owns_lanes() const { return generation_ == world_.generation; }

  Environment& world_;
  const std::int64_t generation_;
  store::Cursor read_;
  relay::DeliveryCore::Due writing_;
  std::vector<store::RetryResult> results_;
  bool loading_{false};  ///< Parked events that are due are being read.
  bool loads_after_write_{false};
};

}  // namespace outbox::sim
