#include "scored/head/store/sqlite.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <utility>

namespace score::head {
namespace {

// Errors that an operator can act on keep their own code: a full disk, a damaged file, no
// permission.
std::error_code code_of(int status) {
  switch (status & 0xff) {
    case SQLITE_FULL:
      return errno_code(ENOSPC);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return make_error_code(Errc::Malformed);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return make_error_code(Errc::Busy);
    case SQLITE_READONLY:
      return errno_code(EROFS);
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return errno_code(EACCES);
    case SQLITE_CANTOPEN:
      return errno_code(ENOENT);
    case SQLITE_CONSTRAINT:
      return make_error_code(Errc::Exists);
    case SQLITE_NOMEM:
      return errno_code(ENOMEM);
    case SQLITE_TOOBIG:
      return make_error_code(Errc::TooLarge);
    default:
      return errno_code(EIO);
  }
}

Error error_of(sqlite3* database, int status) {
  const char* text = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(status);
  return fail(code_of(status), "database: {}", text);
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement& Statement::bind(int position, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), position, value);
  return *this;
}

Statement& Statement::bind_text(int position, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), position, text.data() != nullptr ? text.data() : "",
                      text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_blob(int position, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), position, bytes.data() != nullptr ? bytes.data() : "",
                      bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind_null(int position) {
  sqlite3_bind_null(statement_.get(), position);
  return *this;
}

Result<bool> Statement::step() {
  const int status = sqlite3_step(statement_.get());
  if (status == SQLITE_ROW) return true;
  if (status == SQLITE_DONE) return false;
  return error_of(sqlite3_db_handle(statement_.get()), status);
}

Status Statement::run() {
  auto more = step();
  while (more && *more) more = step();
  reset();
  if (!more) return more.error();
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

Result<Database> Database::open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::Read) flags |= SQLITE_OPEN_READONLY;
  if (mode != Mode::Read) flags |= SQLITE_OPEN_READWRITE;
  if (mode == Mode::Create) flags |= SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database database;
  database.database_.reset(raw);
  if (status != SQLITE_OK) return error_of(raw, status).with_context("cannot open {}", path);
  sqlite3_busy_timeout(raw, 5000);
  return database;
}

Status Database::execute(const char* sql) {
  const int status = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) return error_of(database_.get(), status);
  return {};
}

Result<Statement> Database::prepare(const char* sql) const {
  sqlite3_stmt* raw = nullptr;
  const int status =
      sqlite3_prepare_v3(database_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (status != SQLITE_OK) return error_of(database_.get(), status);
  Statement statement;
  statement.statement_.reset(raw);
  return statement;
}

Result<std::string> Database::value(const char* sql) const {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  auto row = statement->step();
  if (!row) return row.error();
  if (!*row) return std::string();
  return statement->bytes(0);
}

Result<Transaction> Transaction::begin(Database& database) {
  if (auto begun = database.execute("BEGIN IMMEDIATE"); !begun) return begun.error();
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  // If the rollback fails, SQLite has already rolled back itself.
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Status Transaction::commit() {
  auto committed = database_->execute("COMMIT");
  if (committed) database_ = nullptr;
  return committed;
}

Status prepare_all(const Database& database, std::initializer_list<Preparation> list) {
  for (const Preparation& wanted : list) {
    auto statement = database.prepare(wanted.sql);
    if (!statement) return statement.error();
    wanted.statement = std::move(*statement);
  }
  return {};
}

}  // namespace score::head
