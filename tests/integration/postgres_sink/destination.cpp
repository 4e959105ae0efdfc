#include "integration/postgres_sink/destination.hpp"

#include <atomic>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/text.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

std::string read_content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string decode_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes.push_back(static_cast<char>(hex_value(hex[at]) * 16 + hex_value(hex[at + 1])));
  return bytes;
}

bool lets_in(const std::string& url) {
  try {
    (void)Pg(url);
    return true;
  } catch (const PgError&) {
    return false;
  }
}

}  // namespace

PostgresDestination::PostgresDestination() {
  Pg admin = this->admin();
  admin.exec("CREATE ROLE app LOGIN");
  const std::string password = admin.value("SELECT quote_literal($1::text)", kPassword);
  admin.exec("ALTER ROLE app PASSWORD " + password);
  admin.exec("GRANT CREATE, USAGE ON SCHEMA public TO app");
  const std::string file = server_.data() + "/pg_hba.conf";
  const std::string before = read_content(file);
  std::ofstream(file) << "host all app 127.0.0.1/32 scram-sha-256\n" << before;
  admin.exec("SELECT pg_reload_conf()");
  if (!eventually([this] { return !lets_in(url()); }))
    throw std::runtime_error("the server lets the login in without its password");
}

std::string PostgresDestination::url(int port) const {
  return "postgresql://app@127.0.0.1:" + std::to_string(port) + "/postgres";
}

void PostgresDestination::set_read_only(bool on) {
  Pg admin = this->admin();
  admin.exec(on ? "ALTER SYSTEM SET default_transaction_read_only = on"
                : "ALTER SYSTEM RESET default_transaction_read_only");
  admin.exec("SELECT pg_reload_conf()");
  const bool done = eventually([&] {
    return this->admin().value("SHOW default_transaction_read_only") == (on ? "on" : "off");
  });
  if (!done) throw std::runtime_error("the server does not take its new setting");
}

std::string PostgresDestination::new_name(const std::string& prefix) {
  static std::atomic<int> number{0};
  return prefix + std::to_string(++number);
}

void PostgresDestination::make_table(const std::string& name) const {
  Pg admin = this->admin();
  admin.exec(
      "CREATE TABLE " + name +
      " (n bigint GENERATED ALWAYS AS IDENTITY, id uuid, seq bigint, key text, type text, "
      "payload bytea CHECK (octet_length(payload) <= 1048576), headers jsonb, occurred_at timestamptz)");
  admin.exec("GRANT INSERT ON " + name + " TO app");
}

std::vector<Arrived> PostgresDestination::arrived(const std::string& table) const {
  std::vector<Arrived> all;
  for (const PgRow& row :
       admin().exec("SELECT id, key, encode(payload, 'hex') FROM " + table + " ORDER BY n"))
    all.push_back({.id = row[0].value(), .key = row[1], .body = decode_hex(row[2].value_or(""))});
  return all;
}

PostgresDestination* shared_destination() {
  if (!environment("OUTBOX_TEST_PGBIN")) return nullptr;
  static PostgresDestination only;
  return &only;
}

}  // namespace outbox::test
