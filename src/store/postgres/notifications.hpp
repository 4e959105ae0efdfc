// What the server sends on its own to a connection that listens.
#pragma once

#include <libpq-fe.h>

#include <memory>

namespace outbox::store::postgres {

struct FreeNotify {
  void operator()(PGnotify* notify) const noexcept { PQfreemem(notify); }
};

/// Takes what libpq has received; true when there was something.
inline bool take_notifications(PGconn* connection) {
  bool any = false;
  while (const std::unique_ptr<PGnotify, FreeNotify> one{PQnotifies(connection)}) any = true;
  return any;
}

}  // namespace outbox::store::postgres
