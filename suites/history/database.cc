// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/database.h"

#include <cmath>

#include <sqlite3.h>

#include "suites/base/run_error.h"

namespace qcts {
namespace {

constexpr int kWaitForLockMs = 60'000;

[[noreturn]] void database_error(const std::string& file, const std::string& why) {
  throw RunError(Outcome::infrastructure, file + ": " + why);
}

}  // namespace

Statement::Statement(sqlite3* database, std::string file, std::string_view sql)
    : file_(std::move(file)), statement_(nullptr, &sqlite3_finalize) {
  sqlite3_stmt* made = nullptr;
  const int code = sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &made, nullptr);
  statement_.reset(made);
  if (code != SQLITE_OK) database_error(file_, sqlite3_errmsg(database));
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) database_error(file_, sqlite3_errmsg(sqlite3_db_handle(statement_.get())));
}

Statement& Statement::bind(int parameter, int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), parameter, value));
  return *this;
}

Statement& Statement::bind(int parameter, double value) {
  if (!std::isfinite(value)) return bind_null(parameter);
  check(sqlite3_bind_double(statement_.get(), parameter, value));
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view value) {
  check(sqlite3_bind_text64(statement_.get(), parameter, value.data(), value.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  check(sqlite3_bind_null(statement_.get(), parameter));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  database_error(file_, sqlite3_errmsg(sqlite3_db_handle(statement_.get())));
}

void Statement::run() {
  step();
  reset();
}

void Statement::reset() { check(sqlite3_reset(statement_.get())); }

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr ? "" : std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(bytes));
}

Database::Database(const std::filesystem::path& file, Mode mode)
    : file_(file.string()), database_(nullptr, &sqlite3_close) {
  sqlite3* opened = nullptr;
  // Reading too may have to undo what a killed writer left; SQLite opens a file without write permission
  // read-only.
  const int flags = SQLITE_OPEN_READWRITE | (mode == Mode::write ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(file_.c_str(), &opened, flags, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) database_error(file_, opened ? sqlite3_errmsg(opened) : "out of memory");
  sqlite3_busy_timeout(opened, kWaitForLockMs);
}

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    database_error(file_, sqlite3_errmsg(database_.get()));
}

int64_t Database::number(std::string_view sql) {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

int64_t Database::last_inserted() const { return sqlite3_last_insert_rowid(database_.get()); }

Transaction::Transaction(Database& database) : database_(database) { database_.execute("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (
      const std::exception&) {  // SQLite has rolled back by itself, or does so when the file is opened again
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace qcts
