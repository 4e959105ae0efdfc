// Sends each event, or an array of events, as a request to a webhook. It is not gapless: requests
// of different keys run at once, and one that fails stops no other. See docs/sinks/http.md.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <outbox/sink.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sink/answers.hpp"
#include "sink/curl/transfers.hpp"
#include "sink/http/answer.hpp"
#include "sink/http/client.hpp"
#include "sink/http/config.hpp"
#include "sink/http/request.hpp"
#include "sink/network_sink.hpp"

namespace outbox::sink::http {

class HttpSink final : public NetworkSink, public Answers {
 public:
  explicit HttpSink(HttpOptions options);

  [[nodiscard]] SinkTraits traits() const noexcept override;
  /// Connects once, to see whether it works. Earlier connections are dropped.
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void purge() override;
  void close() noexcept override;

  void keep_answers() override { keeps_answers_ = true; }
  [[nodiscard]] AnswerBody take_answer() override { return std::exchange(answer_, {}); }

  /// Shows what the settings say, because a receiver says nothing of itself.
  [[nodiscard]] Inspection inspection() const override;

 private:
  void advance() override;
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] RequestContext context() const;
  void launch(Request request);
  void launch_waiting();
  void take_ends();
  void settle(const Request& request, Outcome outcome);
  void give_up(const Request& request);

  const HttpOptions options_;
  const Client client_;
  Composer composer_;
  bool keeps_answers_{false};
  AnswerBody answer_;
  std::deque<Request> waiting_;  ///< Parts of an array that was refused.
  curl::Transfers::Ticket last_ticket_{0};
  /// Pointers, because handles refer to exchanges; before the transfers, which use them to the end.
  std::unordered_map<curl::Transfers::Ticket, std::unique_ptr<Exchange>> exchanges_;
  std::unique_ptr<curl::Transfers> transfers_;
};

}  // namespace outbox::sink::http
