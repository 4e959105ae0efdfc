// Owners of cnats' objects.
#pragma once

#include <nats/nats.h>

#include "base/owned.hpp"

namespace outbox::sink::nats {

using OptionsHandle = Owned<natsOptions, natsOptions_Destroy>;
using ConnectionHandle = Owned<natsConnection, natsConnection_Destroy>;
using SubscriptionHandle = Owned<natsSubscription, natsSubscription_Destroy>;
using MessageHandle = Owned<natsMsg, natsMsg_Destroy>;

}  // namespace outbox::sink::nats
