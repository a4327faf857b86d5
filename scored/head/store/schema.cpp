// A new database runs all migrations, so there is one path to the current schema, and the columns
// have one order: the changesets of two heads identify a column by its position.
//
// Releases before version 22 left user_version at 1 and added one column at a time, in the order of
// the migrations below. So the number of columns is the version of their databases, even if one of
// them was interrupted.
#include "scored/head/store/schema.hpp"

#include "base/model/model.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <string>

namespace score::head {
namespace {

static_assert(static_cast<int>(JobState::Completed) == 5,
              "states are stored as numbers: the index jobs_active says state < 5");

// Migration i makes version i + 1 from version i. A released migration must not be changed; append
// a new one and increase kSchemaVersion.
constexpr const char* kMigrations[] = {
    R"(
  PRAGMA application_id = 1396920900;
  CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user INTEGER NOT NULL, request BLOB, name TEXT NOT NULL, command TEXT NOT NULL,
    directory TEXT NOT NULL, resources BLOB NOT NULL, stdin_rank INTEGER NOT NULL,
    detached INTEGER NOT NULL, keep_going INTEGER NOT NULL, immediate_ns INTEGER NOT NULL,
    submitted_ns INTEGER NOT NULL,
    state INTEGER NOT NULL, attempt INTEGER NOT NULL DEFAULT 0, nodes TEXT, tasks BLOB, cores BLOB,
    scheduled_ns INTEGER NOT NULL DEFAULT 0, started_ns INTEGER NOT NULL DEFAULT 0,
    exit_code INTEGER, ended_ns INTEGER, status BLOB);
  CREATE UNIQUE INDEX jobs_request ON jobs (user, request) WHERE request IS NOT NULL;
  CREATE INDEX jobs_active ON jobs (id) WHERE state < 5;
  CREATE INDEX jobs_ended ON jobs (ended_ns) WHERE state >= 5;
  CREATE INDEX jobs_ended_user ON jobs (user, ended_ns) WHERE state >= 5;
  CREATE TABLE specs (job INTEGER PRIMARY KEY, spec BLOB NOT NULL);
  CREATE TABLE accounting (
    job INTEGER PRIMARY KEY, user INTEGER NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL,
    exit_code INTEGER NOT NULL, nodes TEXT, tasks INTEGER NOT NULL, submitted_ns INTEGER NOT NULL,
    started_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL, scheduled_ns INTEGER NOT NULL);
  CREATE TABLE settings (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
  INSERT INTO settings VALUES ('head_epoch', 0);
)",
    "ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN ending INTEGER", "ALTER TABLE jobs ADD COLUMN reasons TEXT",
    "ALTER TABLE accounting ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN start_mark TEXT",
    "ALTER TABLE jobs ADD COLUMN filled_ns INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN filled_ns INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN conditions BLOB",
    "ALTER TABLE jobs ADD COLUMN array_id INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN array_task INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN array_rest TEXT",
    "ALTER TABLE jobs ADD COLUMN array_next INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN array_total INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN array_id INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN array_task INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN account TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE accounting ADD COLUMN cores INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN generic TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE jobs ADD COLUMN units TEXT",
    "ALTER TABLE accounting ADD COLUMN signal INTEGER NOT NULL DEFAULT 0",
    // Releases before version 22 may have made some of these.
    R"(
  CREATE INDEX IF NOT EXISTS accounting_ended ON accounting (ended_ns, job);
  CREATE INDEX IF NOT EXISTS accounting_ended_user ON accounting (user, ended_ns, job);
  CREATE INDEX IF NOT EXISTS jobs_ended_once ON jobs (ended_ns)
    WHERE state >= 5 AND array_id IN (0, id);
  CREATE INDEX IF NOT EXISTS jobs_ended_once_user ON jobs (user, ended_ns)
    WHERE state >= 5 AND array_id IN (0, id);
  CREATE INDEX IF NOT EXISTS accounting_array ON accounting (array_id, array_task)
    WHERE array_id > 0;
  CREATE TABLE IF NOT EXISTS uses (
    account TEXT NOT NULL, user INTEGER NOT NULL, core_ms INTEGER NOT NULL, at_ns INTEGER NOT NULL,
    PRIMARY KEY (account, user)) WITHOUT ROWID;
)",
    // JSON objects of pack_usage(); empty in rows of earlier versions.
    "ALTER TABLE jobs ADD COLUMN steps_usage TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE accounting ADD COLUMN usage TEXT NOT NULL DEFAULT ''",
    // A serialised wire::NoticeRequest, and JobProgress::noticed.
    "ALTER TABLE jobs ADD COLUMN notices BLOB;"
    "ALTER TABLE jobs ADD COLUMN noticed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN partition_name TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE accounting ADD COLUMN licenses TEXT NOT NULL DEFAULT ''",
    // A serialised wire::Profile.
    "ALTER TABLE jobs ADD COLUMN profile BLOB NOT NULL DEFAULT x''"};
static_assert(std::size(kMigrations) == kSchemaVersion);

constexpr const char* kApplicationId = "1396920900";  // "SCRD"
// The first migration makes 33 columns in these tables.
constexpr const char* kVersion = R"(
  SELECT IIF(user_version != 1, user_version,
    (SELECT COUNT(*) FROM pragma_table_info('jobs')) +
    (SELECT COUNT(*) FROM pragma_table_info('accounting')) - 32)
  FROM pragma_user_version)";

Result<std::uint32_t> version_of(const Database& database) {
  auto text = database.value(kVersion);
  if (!text) return text.error();
  return parse_number<std::uint32_t>(*text);
}

}  // namespace

Status check_database(const Database& database) {
  auto application = database.value("PRAGMA application_id");
  if (!application) return application.error();
  if (*application != kApplicationId) {
    return fail(Errc::Malformed, "not a database of this program");
  }
  auto version = version_of(database);
  if (!version) return version.error();
  if (*version > kSchemaVersion) {
    return fail(Errc::Malformed,
                "schema version {} is newer than version {}, which this program supports; install "
                "the release of scored that wrote it",
                *version, kSchemaVersion);
  }
  auto sound = database.value("PRAGMA quick_check(1)");
  if (!sound) return sound.error();
  if (*sound != "ok") return fail(Errc::Malformed, "damaged: {}", *sound);
  return {};
}

Status migrate(Database& database) {
  auto version = version_of(database);
  if (!version) return version.error();
  if (*version == kSchemaVersion) return {};
  auto transaction = Transaction::begin(database);
  if (!transaction) return transaction.error();
  const auto pending = std::span(kMigrations).subspan(*version);
  const std::string sql =
      fmt::format("{}; PRAGMA user_version = {}", fmt::join(pending, ";"), kSchemaVersion);
  if (auto done = database.execute(sql.c_str()); !done) {
    return done.error().with_context("cannot migrate from schema version {}", *version);
  }
  return transaction->commit();
}

}  // namespace score::head
