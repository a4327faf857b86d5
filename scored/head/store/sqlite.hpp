#pragma once
// These classes wrap SQLite: a Database is a connection, and a Statement is a prepared statement of
// it. A connection and its statements must be used by one thread at a time. Statements are prepared
// only from literals; values are bound, never printed into SQL.

#include "base/result.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace score::head {

class Statement {
 public:
  Statement() = default;

  // Positions count from 1. SQLite copies the bytes, which stay bound until the next reset(). A
  // failed bind (out of memory) shows up at step().
  Statement& bind(int position, std::int64_t value);
  Statement& bind_text(int position, std::string_view text);
  Statement& bind_blob(int position, std::string_view bytes);
  Statement& bind_null(int position);

  // Returns true if there is a row, and false at the end. After an error or false the statement
  // must be reset.
  [[nodiscard]] Result<bool> step();
  // Calls step() to the end, then reset(); for statements without rows.
  [[nodiscard]] Status run();
  void reset();

  // These read columns of the current row, counted from 0. NULL reads as 0 or "".
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string bytes(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Database;

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Recorder;

class Database {
 public:
  enum class Mode { Create, ReadWrite, Read };

  // Errors: the file is missing (ReadWrite, Read), it is not a database, or the kernel's.
  [[nodiscard]] static Result<Database> open(const std::string& path, Mode mode);

  // Executes one or more statements without values or rows, from a literal.
  [[nodiscard]] Status execute(const char* sql);
  [[nodiscard]] Result<Statement> prepare(const char* sql) const;
  // Returns the single value of a statement such as "PRAGMA user_version".
  [[nodiscard]] Result<std::string> value(const char* sql) const;
  // Applies changes that the Recorder of an equal database returned, within the open transaction.
  // Errors: Malformed (not such bytes, or this database is not equal).
  [[nodiscard]] Status apply_changes(std::string_view changes);
  // Writes a copy of the committed state to a new file; replaces an existing file.
  [[nodiscard]] Status copy_to(const std::string& path) const;

 private:
  friend class Recorder;

  struct Close {
    void operator()(sqlite3* database) const;
  };

  std::unique_ptr<sqlite3, Close> database_;
};

struct Preparation {
  Statement& statement;
  const char* sql;
};

// Prepares several statements; returns the first failure.
[[nodiscard]] Status prepare_all(const Database& database, std::initializer_list<Preparation> list);

// Recorder records the changes of all tables while it exists, as an SQLite changeset
// (https://www.sqlite.org/sessionintro.html). The database must outlive it.
class Recorder {
 public:
  [[nodiscard]] static Result<Recorder> begin(const Database& database);
  [[nodiscard]] Result<std::string> changes() const;

 private:
  struct Delete {
    void operator()(void* session) const;
  };

  std::unique_ptr<void, Delete> session_;
};

// Transaction is BEGIN ... COMMIT; it is rolled back unless committed.
class Transaction {
 public:
  [[nodiscard]] static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  [[nodiscard]] Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}

  Database* database_;
};

}  // namespace score::head
