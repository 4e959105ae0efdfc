#include "sink/curl/transfers.hpp"

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"

namespace outbox::sink::curl {
namespace {

/// How long the thread sleeps without transfers; a call of ours wakes it earlier.
constexpr std::chrono::milliseconds kIdle{60'000};

/// Blocks SIGPIPE in this thread: a peer that closes while a TLS library writes must not end the
/// process, whatever the application does with the signal.
void block_sigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  (void)pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

CURLM* new_multi(const Transfers::Options& options) {
  CURLM* const multi = curl_multi_init();
  OUTBOX_CHECK(multi != nullptr);
  // By default libcurl keeps four connections for each running transfer and closes the others.
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(options.capacity));
  curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, static_cast<long>(options.per_host));
  return multi;
}

}  // namespace

Result<std::unique_ptr<Transfers>> Transfers::start(const Options& options,
                                                    std::function<void()> on_done) {
  (void)new_easy();  // Prepares libcurl.
  std::unique_ptr<Transfers> made(new Transfers(options, std::move(on_done)));
  try {
    made->thread_ = start_thread(
        "ob-transfers", [made = made.get()](const std::stop_token& stop) { made->run(stop); });
  } catch (const std::system_error& error) {
    return fail(Errc::unavailable, "cannot start a thread: " + error.code().message(),
                "raise the limit of threads of the relay");
  }
  return made;
}

Transfers::Transfers(const Options& options, std::function<void()> on_done)
    : capacity_(options.capacity), on_done_(std::move(on_done)), multi_(new_multi(options)) {}

Transfers::~Transfers() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  curl_multi_wakeup(multi_.get());
  thread_.join();
}

// ---- the caller's side

bool Transfers::submit(Ticket ticket, Easy&& easy, TimePoint deadline) {
  {
    const MutexLock lock(mutex_);
    if (used_ == capacity_) return false;
    ++used_;
    submitted_.push_back({.ticket = ticket, .easy = std::move(easy), .deadline = deadline});
  }
  curl_multi_wakeup(multi_.get());
  return true;
}

std::vector<Transfers::Done> Transfers::take_done() {
  const MutexLock lock(mutex_);
  used_ -= done_.size();
  return std::exchange(done_, {});
}

void Transfers::cancel_all() {
  const MutexLock lock(mutex_);
  if (used_ == done_.size()) return;
  cancelling_ = true;
  curl_multi_wakeup(multi_.get());
  changed_.wait(mutex_, [this]() OUTBOX_REQUIRES(mutex_) { return !cancelling_; });
}

// ---- the thread

void Transfers::run(const std::stop_token& stop) {
  block_sigpipe();
  while (!stop.stop_requested()) {
    take_orders();
    int running = 0;
    if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) finish_all(CURLE_FAILED_INIT);
    take_finished();
    finish_overdue();
    hand_over();
    (void)curl_multi_poll(multi_.get(), nullptr, 0, wait_ms(), nullptr);
  }
  // All other handles must leave the multi handle before it is destroyed.
  finish_all(CURLE_ABORTED_BY_CALLBACK);
}

void Transfers::take_orders() {
  std::vector<Job> jobs;
  bool cancelling = false;
  {
    const MutexLock lock(mutex_);
    jobs.swap(submitted_);
    cancelling = cancelling_;
  }
  for (Job& job : jobs) begin(std::move(job));
  if (!cancelling) return;
  finish_all(CURLE_ABORTED_BY_CALLBACK);
  hand_over();
  {
    const MutexLock lock(mutex_);
    cancelling_ = false;
  }
  changed_.notify_all();
}

void Transfers::begin(Job job) {
  CURL* const easy = job.easy.get();
  running_.emplace(easy, std::move(job));
  if (curl_multi_add_handle(multi_.get(), easy) != CURLM_OK) finish(easy, CURLE_FAILED_INIT);
}

void Transfers::take_finished() {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
    // Removing the handle frees the message.
    if (message->msg == CURLMSG_DONE) finish(message->easy_handle, message->data.result);
  }
}

void Transfers::finish_overdue() {
  const TimePoint now = now_steady();
  std::vector<CURL*> overdue;
  for (const auto& [easy, job] : running_) {
    if (job.deadline <= now) overdue.push_back(easy);
  }
  for (CURL* const easy : overdue) finish(easy, CURLE_OPERATION_TIMEDOUT);
}

void Transfers::finish(CURL* easy, CURLcode code) {
  (void)curl_multi_remove_handle(multi_.get(), easy);
  const auto found = running_.find(easy);
  OUTBOX_CHECK(found != running_.end());
  finished_.push_back(
      {.ticket = found->second.ticket, .easy = std::move(found->second.easy), .code = code});
  running_.erase(found);
}

void Transfers::finish_all(CURLcode code) {
  while (!running_.empty()) finish(running_.begin()->first, code);
}

void Transfers::hand_over() {
  if (finished_.empty()) return;
  {
    const MutexLock lock(mutex_);
    std::move(finished_.begin(), finished_.end(), std::back_inserter(done_));
  }
  finished_.clear();
  on_done_();
}

int Transfers::wait_ms() const {
  const TimePoint now = now_steady();
  auto wait = std::chrono::steady_clock::duration(kIdle);
  for (const auto& [easy, job] : running_) wait = std::min(wait, job.deadline - now);
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(wait).count()));
}

}  // namespace outbox::sink::curl
