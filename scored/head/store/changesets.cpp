// This file uses SQLite's session extension, which turns the changes of transactions into bytes and
// applies such bytes.
#define SQLITE_ENABLE_SESSION
#define SQLITE_ENABLE_PREUPDATE_HOOK
#include "base/errc.hpp"
#include "scored/head/store/sqlite.hpp"

#include <sqlite3.h>

#include <limits>
#include <unistd.h>

namespace score::head {
namespace {

Error failure(sqlite3* database, int status, const char* what) {
  const char* text = status == SQLITE_NOMEM ? "out of memory" : sqlite3_errmsg(database);
  return fail(Errc::Malformed, "{}: {} ({})", what, text, status);
}

}  // namespace

void Recorder::Delete::operator()(void* session) const {
  sqlite3session_delete(static_cast<sqlite3_session*>(session));
}

Result<Recorder> Recorder::begin(const Database& database) {
  sqlite3* const db = database.database_.get();
  sqlite3_session* session = nullptr;
  if (const int status = sqlite3session_create(db, "main", &session); status != SQLITE_OK) {
    return failure(db, status, "cannot record changes");
  }
  Recorder recorder;
  recorder.session_.reset(session);
  if (const int status = sqlite3session_attach(session, nullptr); status != SQLITE_OK) {
    return failure(db, status, "cannot record changes");
  }
  return recorder;
}

Result<std::string> Recorder::changes() const {
  int size = 0;
  void* data = nullptr;
  auto* session = static_cast<sqlite3_session*>(session_.get());
  const int status = sqlite3session_changeset(session, &size, &data);
  if (status != SQLITE_OK) return failure(nullptr, status, "cannot read the recorded changes");
  std::string changes(static_cast<const char*>(data), static_cast<std::size_t>(size));
  sqlite3_free(data);
  return changes;
}

// A change that does not fit means that the databases differ, so all of it is refused.
Status Database::apply_changes(std::string_view changes) {
  if (changes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return fail(Errc::TooLarge, "{} bytes of changes", changes.size());
  }
  std::string copy(changes);  // the library takes a non-const pointer
  const auto refuse = [](void*, int, sqlite3_changeset_iter*) { return SQLITE_CHANGESET_ABORT; };
  const int status = sqlite3changeset_apply(database_.get(), static_cast<int>(copy.size()),
                                            copy.data(), nullptr, refuse, nullptr);
  if (status != SQLITE_OK) return failure(database_.get(), status, "cannot apply changes");
  return {};
}

Status Database::copy_to(const std::string& path) const {
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) ::unlink((path + suffix).c_str());
  auto target = open(path, Mode::Create);
  if (!target) return target.error();
  sqlite3* const to = target->database_.get();
  sqlite3_backup* backup = sqlite3_backup_init(to, "main", database_.get(), "main");
  if (backup == nullptr) return failure(to, sqlite3_errcode(to), "cannot copy the database");
  constexpr int kAllPages = -1;
  const int stepped = sqlite3_backup_step(backup, kAllPages);
  const int status = sqlite3_backup_finish(backup);
  if (stepped != SQLITE_DONE || status != SQLITE_OK)
    return failure(to, status, "cannot copy the database");
  return {};
}

}  // namespace score::head
