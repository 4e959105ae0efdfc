#include "conformance/store/sqlite_database.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <outbox/sqlite.hpp>
#include <system_error>

namespace outbox::conformance {

SqliteDatabase::SqliteDatabase() {
  std::string name = (std::filesystem::temp_directory_path() / "outbox-store-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "mkdtemp");
  directory_ = name;
}

SqliteDatabase::~SqliteDatabase() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void SqliteDatabase::enqueue_and_roll_back(const Event& event) {
  const Application application(path());
  sqlite::Transaction tx(application.db());
  (void)tx.enqueue(event);
}

void SqliteDatabase::make_schema_too_new() {
  Application(path()).run(
      "INSERT INTO outbox_migration (version, name, checksum) VALUES (99, '0099_future', '')");
}

Application::Application(const std::string& path) {
  EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
  sqlite3_busy_timeout(db_, 10'000);
}

Application::~Application() {
  EXPECT_EQ(sqlite3_close(db_), SQLITE_OK) << "something was left on the connection";
}

void Application::run(const std::string& sql) const {
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
      << sql << ": " << message;
  sqlite3_free(message);
}

std::string Application::value(const std::string& sql) const {
  sqlite3_stmt* stmt = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &stmt, nullptr), SQLITE_OK)
      << sql << ": " << sqlite3_errmsg(db_);
  std::string value;
  if (sqlite3_step(stmt) == SQLITE_ROW) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(stmt, 0));
    value = text == nullptr ? "" : text;
  }
  sqlite3_finalize(stmt);
  return value;
}

}  // namespace outbox::conformance
