#include "pg/connect.hpp"

#include <array>
#include <cstring>

#include "base/log.hpp"
#include "pg/url.hpp"

namespace outbox::pg {
namespace {

// With these a dead peer is noticed in 25 s instead of hours. They apply only where neither the URL
// nor the environment sets them: they precede the URL in the list, so that it overrides them.
constexpr std::array<std::pair<const char*, const char*>, 6> kDefaults{{
    {"connect_timeout", "5"},
    {"keepalives", "1"},
    {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "20000"},
}};

/// Whether this libpq knows the parameter and the environment does not set it.
bool is_unset(const PQconninfoOption* known, const char* keyword) {
  for (; known != nullptr && known->keyword != nullptr; ++known) {
    if (std::strcmp(known->keyword, keyword) == 0) return known->val == nullptr;
  }
  return false;
}

void on_notice(void*, const PGresult* notice) {
  const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* said = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
  if (severity == nullptr || said == nullptr) return;
  if (std::strcmp(severity, "WARNING") == 0) {
    log::warn("postgresql warns", {{"text", said}});
  } else {
    log::debug("postgresql says", {{"text", said}});
  }
}

}  // namespace

PGconn* connect(const std::string& url, const std::string& application,
                const Parameters& overriding) {
  const Options known(PQconndefaults());
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  const auto set = [&](const char* keyword, const char* value) {
    keywords.push_back(keyword);
    values.push_back(value);
  };
  for (const auto& [keyword, value] : kDefaults) {
    if (is_unset(known.get(), keyword)) set(keyword, value);
  }
  set("fallback_application_name", application.c_str());
  set("dbname", url.c_str());
  for (const auto& [keyword, value] : overriding) set(keyword, value.c_str());
  set("client_encoding", "UTF8");
  set(nullptr, nullptr);
  PGconn* const connection = PQconnectdbParams(keywords.data(), values.data(), 1);
  if (connection != nullptr) PQsetNoticeReceiver(connection, on_notice, nullptr);
  return connection;
}

}  // namespace outbox::pg
