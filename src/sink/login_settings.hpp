// The settings username and password, for sinks whose settings have members of these names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "base/setting.hpp"
#include "sink/endpoint.hpp"

namespace outbox::sink {

template <class Settings>
SettingRows<Settings> login_rows(const char* username_help = "Instead of the one in url.") {
  return {
      {"username", &Settings::username, username_help},
      {"password", &Settings::password, Traits{.secret = true}, "Instead of the one in url."},
  };
}

/// A username requires a password, either in the settings or in the address. `sink` is "http", say.
void check_login(const std::string& sink, const std::string& username, const std::string& password,
                 std::span<const Endpoint> endpoints, FieldErrors& errors);

}  // namespace outbox::sink
