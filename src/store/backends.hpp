// The stores that this program was built with, and what each does before anything is opened.
#pragma once

#include <chrono>
#include <memory>
#include <outbox/error.hpp>
#include <string>

#include "store/diagnosis.hpp"
#include "store/store.hpp"
#include "store/subscriptions.hpp"
#include "store/url.hpp"

namespace outbox::store {

/// The functions take a URL of this store.
struct Backend {
  /// Whether the URL is valid. The message follows the name of the setting ("has a blank").
  Status (*check_url)(const std::string& url);
  // The next three take URLs that check_url() accepts.
  /// Whether the place on this machine that the URL names can be used.
  Status (*check_place)(const std::string& url);
  /// The path of the file as it is written; empty if the store is not a file.
  std::string (*find_file)(const std::string& url);
  /// The URL as it may be shown to people and in logs.
  std::string (*shown_url)(const std::string& url);
  Result<std::unique_ptr<Store>> (*open)(StoreOptions options);
  Result<std::unique_ptr<SubscriptionChanges>> (*open_changes)(const StoreOptions& options);
  Result<std::string> (*print_migrations)(const StoreOptions& options);
  Diagnosis (*diagnose)(const StoreOptions& options, std::chrono::steady_clock::time_point until);
};

/// Null if this program was built without the store.
[[nodiscard]] const Backend* find_backend(StoreKind kind) noexcept;

}  // namespace outbox::store
