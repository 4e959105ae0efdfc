#include "sink/socket_watch.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.hpp"
#include "base/thread.hpp"

namespace outbox::sink {
namespace {

Status no_watch(int code) {
  return fail(Errc::unavailable, "cannot watch sockets: " + std::generic_category().message(code),
              "raise the limit of open files or of threads of the relay");
}

}  // namespace

Status SocketWatch::start() {
  if (thread_.joinable()) return {};
  if (epoll_ < 0) epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (stop_ < 0) stop_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_ < 0 || stop_ < 0) return no_watch(errno);
  epoll_event event{.events = EPOLLIN, .data = {.fd = stop_}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, stop_, &event) != 0 && errno != EEXIST)
    return no_watch(errno);
  try {
    thread_ = start_thread("ob-socket", [this](const std::stop_token&) { run(); });
  } catch (const std::system_error& error) {
    return no_watch(error.code().value());
  }
  return {};
}

SocketWatch::~SocketWatch() {
  if (thread_.joinable()) {
    (void)::eventfd_write(stop_, 1);
    thread_.join();
  }
  if (epoll_ >= 0) ::close(epoll_);
  if (stop_ >= 0) ::close(stop_);
}

/// One shot: a socket that stays readable calls again only once the sink has armed it again.
void SocketWatch::arm(int socket, Interest interest) {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.fd = socket}};
  if (interest.write) event.events |= EPOLLOUT;
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event) == 0 || errno != ENOENT) return;
  OUTBOX_CHECK(::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) == 0);
}

void SocketWatch::forget(int socket) noexcept {
  (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
}

void SocketWatch::run() {
  while (true) {
    epoll_event event{};
    const int found =
        ::epoll_wait(epoll_, &event, 1, every_ ? static_cast<int>(every_->count()) : -1);
    if (found < 0) continue;
    if (found > 0 && event.data.fd == stop_) return;
    ready_();
  }
}

}  // namespace outbox::sink
