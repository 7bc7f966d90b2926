// SPDX-License-Identifier: BSD-3-Clause
// SQLite with destructors and exceptions.
// Every failure throws RunError (infrastructure) with the file's name and SQLite's own message.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace qcts {

class Statement {
 public:
  Statement(sqlite3* database, std::string file, std::string_view sql);

  // Parameters count from 1, columns from 0. A bound value stays until another replaces it.
  Statement& bind(int parameter, int64_t value);
  Statement& bind(int parameter, double value);  // binds NULL if the value is not finite
  Statement& bind(int parameter, std::string_view value);
  Statement& bind_null(int parameter);
  bool step();  // returns false if there is no further row
  // Runs the statement to its end and makes it ready to be bound and stepped again.
  void run();
  void reset();

  bool is_null(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  void check(int code) const;

  std::string file_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
};

class Database {
 public:
  enum class Mode { read, write };  // `write` creates the file
  Database(const std::filesystem::path& file, Mode mode);

  Statement prepare(std::string_view sql) { return {database_.get(), file_, sql}; }
  void execute(const std::string& sql);  // one or more SQL statements
  int64_t number(std::string_view sql);  // returns the number in the first row, or 0 if there is none
  int64_t last_inserted() const;
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> database_;
};

// Takes the file's write lock. All changes are undone unless commit() is reached.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace qcts
