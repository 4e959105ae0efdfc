// A handler that sends each task through a sink: requests and mails, with the settings, formats and
// checks that these have for events (docs/guide/tasks.md, "Handlers without C++").
#pragma once

#include <functional>
#include <memory>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <outbox/worker.hpp>

namespace outbox::task {

/// A header, beside those of the format, that says which run of its task a message belongs to.
inline constexpr std::string_view kAttemptHeader = "outbox-task-attempt";

/// What the outcome of its message means for a task.
[[nodiscard]] TaskEnd end_of_outcome(const Outcome& outcome);

/// Makes a sink that is not open yet.
using MakeSink = std::function<Result<std::unique_ptr<Sink>>(const SubscriptionSpec&)>;

/// `spec` is the sink, its settings, and what its messages are. Runs that happen at once have a
/// sink each, which is kept for later runs. A run that is told to stop gives up its message.
/// Nothing is opened yet, so an error is one of the settings.
[[nodiscard]] Result<Handlers::Run> sink_handler(SubscriptionSpec spec);
[[nodiscard]] Result<Handlers::Run> sink_handler(SubscriptionSpec spec, MakeSink make);

}  // namespace outbox::task
