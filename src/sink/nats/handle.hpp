// Owners of cnats' objects.
#pragma once

#include <nats/nats.h>

#include <memory>

namespace outbox::sink::nats {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* thing) const noexcept {
    destroy(thing);
  }
};

using OptionsHandle = std::unique_ptr<natsOptions, Destroy<natsOptions_Destroy>>;
using ConnectionHandle = std::unique_ptr<natsConnection, Destroy<natsConnection_Destroy>>;
using SubscriptionHandle = std::unique_ptr<natsSubscription, Destroy<natsSubscription_Destroy>>;
using MessageHandle = std::unique_ptr<natsMsg, Destroy<natsMsg_Destroy>>;

}  // namespace outbox::sink::nats
