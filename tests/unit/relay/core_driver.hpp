// Steps a DeliveryCore: the test passes pages, takes the events to send, and reports their
// outcomes. It names an event by its seq.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "relay/delivery_core.hpp"

namespace outbox::relay {

struct Logged {
  std::int64_t seq{0};
  std::string key{};  ///< Empty if the event has no key, and so no order.
  bool wanted{true};
};

inline constexpr std::size_t kEventBytes = 10;

/// The cursor behind everything that is visible in a snapshot.
inline store::Cursor drained_at(std::string s1) { return {.s1 = std::move(s1)}; }

inline EventId id_of(std::int64_t seq) {
  EventId id;
  for (unsigned byte = 0; byte < 8; ++byte) {
    id.bytes[15 - byte] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(seq) >> (8 * byte));
  }
  return id;
}

inline EventRef ref_of(std::int64_t seq) { return {.seq = seq, .id = id_of(seq)}; }

/// A page of `pair` whose events come after `from`.
inline std::shared_ptr<const store::Page> page_of(const store::Pair& pair, std::int64_t from,
                                                  const std::vector<Logged>& events, bool drained) {
  auto page = std::make_shared<store::Page>();
  auto keys = std::make_shared<std::deque<std::string>>();
  page->pair = std::make_shared<const store::Pair>(pair);
  page->from = from;
  page->position = events.empty() ? from : events.back().seq;
  page->drained = drained;
  for (const Logged& logged : events) {
    keys->push_back(logged.key);
    EventView view;
    view.seq = logged.seq;
    view.id = id_of(logged.seq);
    view.aggregate_type = "order";
    view.aggregate_id = keys->back();
    view.event_type = "Happened";
    page->events.push_back(view);
    page->bytes += kEventBytes;
  }
  page->storage = keys;
  return page;
}

class CoreDriver {
 public:
  explicit CoreDriver(CoreOptions options, store::Cursor start = drained_at("0"),
                      Window::Limits limits = {}, BackoffPolicy backoff = {})
      : sink_(std::make_unique<SinkState>(backoff)),
        window_(std::make_unique<Window>(limits)),
        gate_(std::make_unique<KeyGate>()),
        sink(*sink_),
        window(*window_),
        gate(*gate_),
        core(std::move(options), std::move(start), sink, window, *gate_) {}

  void page(const store::Pair& pair, std::int64_t from, const std::vector<Logged>& events,
            bool drained) {
    std::vector<std::uint8_t> wanted;
    for (const Logged& logged : events) wanted.push_back(logged.wanted ? 1 : 0);
    const auto read = page_of(pair, from, events, drained);
    window.add(*read);
    core.page_read(read, wanted, now);
  }
  /// Passes a whole pair to the core, in one page.
  void pair(const std::string& s1, const std::string& s2, const std::vector<Logged>& events) {
    page({.s1 = s1, .s2 = s2, .bound = 1000}, 0, events, true);
  }

  void open() {
    if (sink.wants_open(now)) sink.opened({}, now);
  }
  /// Hands over all events that may be sent, in batches. Returns their seqs in the order of
  /// sending.
  std::vector<std::int64_t> send_all() {
    std::vector<std::int64_t> seqs;
    while (true) {
      const auto batch = send(1000000);
      if (batch.empty()) return seqs;
      seqs.insert(seqs.end(), batch.begin(), batch.end());
    }
  }
  /// Hands over at most `most` events of one batch. Returns their seqs.
  std::vector<std::int64_t> send(std::size_t most) {
    std::vector<std::int64_t> seqs;
    const auto sends = core.to_send(now);
    const std::size_t count = std::min(most, sends.size());
    for (std::size_t i = 0; i < count; ++i) {
      seqs.push_back(sends[i].event->seq);
      tokens[sends[i].event->seq] = sends[i].token;
    }
    core.handed_over(count);
    return seqs;
  }

  void report(std::int64_t seq, Outcome outcome) {
    outcome.token = tokens.at(seq);
    core.outcome(outcome, now);
  }
  void report(std::int64_t seq, Outcome::Kind kind, const std::string& why = {}) {
    Outcome outcome;
    outcome.kind = kind;
    outcome.error.message = why;
    report(seq, std::move(outcome));
  }
  void ack(std::int64_t seq) { report(seq, Outcome::Kind::acked); }
  void ack_all(const std::vector<std::int64_t>& seqs) {
    for (const std::int64_t seq : seqs) ack(seq);
  }

  void stop(bool fill_gaps) {
    core.stop_requested(now);
    sink.stop_requested(fill_gaps);
  }

  void pass(std::chrono::nanoseconds time) {
    now += std::chrono::duration_cast<TimePoint::duration>(time);
  }
  /// Advances time past the pause after a failure and opens the sink again.
  void pass_pause() {
    pass(std::chrono::hours(1));
    open();
  }
  /// Advances time by a second. Returns the rows that are due, which the core then takes as
  /// written.
  std::vector<store::Settlement> settle() {
    pass(std::chrono::seconds(1));
    auto due = core.settle(now);
    if (!due.empty()) core.settled();
    parked.insert(parked.end(), due.parked.begin(), due.parked.end());
    return due.rows;
  }

  // They are on the heap because the core refers to them, and a driver may be returned by value.
 private:
  std::unique_ptr<SinkState> sink_;
  std::unique_ptr<Window> window_;
  std::unique_ptr<KeyGate> gate_;

 public:
  SinkState& sink;
  Window& window;
  KeyGate& gate;
  DeliveryCore core;
  TimePoint now{std::chrono::hours(1)};
  std::map<std::int64_t, Token> tokens;
  std::vector<store::ParkedEvent> parked;  ///< The parked events of all settlements so far.
};

}  // namespace outbox::relay
