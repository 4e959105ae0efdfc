// A SQLite file in a directory of its own, which is deleted afterwards.
#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <string>

#include "conformance/store/database.hpp"

namespace outbox::conformance {

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;
  SqliteDatabase(SqliteDatabase&&) = delete;
  SqliteDatabase& operator=(SqliteDatabase&&) = delete;
  ~SqliteDatabase() override;

  [[nodiscard]] std::string url() const override { return "sqlite:" + path(); }
  void enqueue_and_roll_back(const Event& event) override;
  void make_schema_too_new() override;

  [[nodiscard]] std::string path() const { return (directory_ / "shop.db").string(); }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

/// A connection like an application's.
class Application {
 public:
  explicit Application(const std::string& path);
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  Application(Application&&) = delete;
  Application& operator=(Application&&) = delete;
  ~Application();

  [[nodiscard]] sqlite3* db() const { return db_; }
  /// Fails the test when the statement fails.
  void run(const std::string& sql) const;
  /// The first column of the first row, as text; empty if there is none.
  [[nodiscard]] std::string value(const std::string& sql) const;

 private:
  sqlite3* db_{nullptr};
};

}  // namespace outbox::conformance
