#include "base/thread.hpp"

#include <pthread.h>

#include <condition_variable>
#include <utility>

#include "base/mutex.hpp"

namespace outbox {

std::jthread start_thread(std::string name, std::function<void(std::stop_token)> body) {
  return std::jthread(
      [name = std::move(name), body = std::move(body)](const std::stop_token& stop) {
        pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
        body(stop);
      });
}

void sleep_for(std::chrono::nanoseconds time, const std::stop_token& stop) {
  Mutex mutex;
  std::condition_variable_any never;
  const MutexLock lock(mutex);
  (void)never.wait_for(mutex, stop, time, [] { return false; });
}

}  // namespace outbox
