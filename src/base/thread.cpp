#include "base/thread.hpp"

#include <pthread.h>

#include <utility>

namespace outbox {

std::jthread start_thread(std::string name, std::function<void(std::stop_token)> body) {
  return std::jthread(
      [name = std::move(name), body = std::move(body)](const std::stop_token& stop) {
        pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
        body(stop);
      });
}

}  // namespace outbox
