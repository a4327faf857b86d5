// A head cannot start with an empty database by mistake. A new database is made under a temporary
// name, filled with its tables and renamed, so a crash leaves no incomplete one; and the lock file
// records that there was one. A database that is missing or empty after that is an error, because
// starting without it would lose jobs and reuse their ids.
#include "scored/head/store/store.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "scored/head/store/packing.hpp"
#include "scored/head/store/schema.hpp"
#include "scored/head/store/setting_keys.hpp"
#include "scored/head/store/wal_check.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::head {
namespace {

constexpr const char* kInUse = "in use\n";

std::int64_t count(Duration duration) {
  return duration.count();
}

std::int64_t count(WallTime time) {
  return time.time_since_epoch().count();
}

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

// The monotonic clock is valid for a later head only if the machine has not been rebooted since.
std::string this_boot() {
  const auto id = read_file("/proc/sys/kernel/random/boot_id", 64);
  return id ? std::string(trim(*id)) : std::string();
}

std::string pack_mark(TimePoint at, const std::string& boot) {
  if (at == TimePoint() || boot.empty()) return {};
  return fmt::format("{} {}", boot, at.time_since_epoch().count());
}

TimePoint unpack_mark(std::string_view mark, const std::string& boot) {
  if (boot.empty() || !mark.starts_with(boot + " ")) return {};
  const auto ns = parse_number<std::uint64_t>(mark.substr(boot.size() + 1));
  return TimePoint(Duration(ns ? static_cast<std::int64_t>(*ns) : 0));
}

bool exists(const std::string& path) {
  struct stat info {};

  return ::lstat(path.c_str(), &info) == 0;
}

// Only the head may write to the directory, because a user who can write there can submit as any
// user.
Status check_directory(const std::string& directory) {
  struct stat info {};

  if (::lstat(directory.c_str(), &info) != 0) {
    return fail(errno_code(errno), "cannot access state directory {}", directory);
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(Errc::Denied, "state directory {}: not a directory", directory);
  }
  if (info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    return fail(Errc::Denied,
                "state directory {}: must belong to uid {} and not be writable by other users",
                directory, ::geteuid());
  }
  return {};
}

Status sync_directory(const std::string& directory) {
  auto fd = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return fd.error();
  if (::fsync(fd->get()) != 0) return fail(errno_code(errno), "cannot sync {}", directory);
  return {};
}

Result<UniqueFd> lock_directory(const std::string& directory) {
  const std::string path = directory + "/head.lock";
  auto fd = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!fd) return fd.error();
  if (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return fail(Errc::Busy, "{}: another head is running", path);
    return fail(errno_code(errno), "cannot lock {}", path);
  }
  return fd;
}

Status make_database(const std::string& directory, const std::string& path) {
  const std::string fresh = path + ".new";
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((fresh + suffix).c_str());
  {
    auto database = Database::open(fresh, Database::Mode::Create);
    if (!database) return database.error();
    if (auto made = database->execute("PRAGMA synchronous = FULL"); !made) return made;
    if (auto made = migrate(*database); !made) return made;
    if (auto made = database->execute("PRAGMA journal_mode = WAL"); !made) return made;
  }
  if (::chmod(fresh.c_str(), 0600) != 0)
    return fail(errno_code(errno), "cannot change the mode of {}", fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    return fail(errno_code(errno), "cannot rename {}", fresh);
  }
  return sync_directory(directory);
}

void bind_progress(Statement& statement, const JobProgress& progress, const std::string& boot) {
  statement.bind(2, static_cast<std::int64_t>(progress.state))
      .bind(3, number(progress.placement.attempt.value()))
      .bind_text(4, pack_names(progress.placement.nodes))
      .bind_blob(5, pack(progress.placement.tasks_on_node))
      .bind_blob(6, pack_cores(progress.placement.cores))
      .bind(7, count(progress.scheduled))
      .bind(8, count(progress.started))
      .bind(9, progress.detached ? 1 : 0)
      .bind(10, progress.restarts)
      .bind_text(12, pack_names(progress.reasons))
      .bind_text(14, pack_mark(progress.start_mark, boot))
      .bind(17, count(progress.filled))
      .bind_text(18, pack_units(progress.placement.units))
      .bind_text(19, pack_usage(progress.steps_usage))
      .bind(20, progress.noticed);
  if (progress.ending) {
    statement.bind(11, static_cast<std::int64_t>(*progress.ending));
  } else {
    statement.bind_null(11);
  }
}

StoredJob read_job(const Statement& row, const std::string& boot) {
  StoredJob job;
  job.info.id = JobId(static_cast<std::uint64_t>(row.integer(0)));
  job.info.user = UserId(static_cast<std::uint32_t>(row.integer(1)));
  job.info.request = unpack_request(row.bytes(2));
  job.info.name = row.bytes(3);
  job.info.command = row.bytes(4);
  job.info.directory = row.bytes(5);
  job.info.resources = row.bytes(6);
  job.info.stdin_rank = row.integer(7);
  job.progress.detached = row.integer(8) != 0;
  job.info.keep_going = row.integer(9) != 0;
  job.info.immediate = Duration(row.integer(10));
  job.info.submitted = WallTime(Duration(row.integer(11)));
  job.progress.state = static_cast<JobState>(row.integer(12));
  job.progress.placement.attempt = AttemptId(static_cast<std::uint64_t>(row.integer(13)));
  job.progress.placement.nodes = unpack_names(row.bytes(14));
  job.progress.placement.tasks_on_node = unpack(row.bytes(15));
  job.progress.placement.cores = unpack_cores(row.bytes(16));
  job.progress.scheduled = Duration(row.integer(17));
  job.progress.started = WallTime(Duration(row.integer(18)));
  job.progress.restarts = static_cast<std::uint32_t>(row.integer(19));
  job.progress.exit_code = static_cast<std::int32_t>(row.integer(20));
  if (!row.is_null(21)) job.progress.ending = static_cast<JobState>(row.integer(21));
  job.progress.reasons = unpack_names(row.bytes(22));
  job.progress.start_mark = unpack_mark(row.bytes(23), boot);
  job.progress.filled = Duration(row.integer(24));
  job.info.spec_bytes = Bytes(static_cast<std::uint64_t>(row.integer(25)));
  job.info.conditions = row.bytes(26);
  job.info.array = JobId(static_cast<std::uint64_t>(row.integer(27)));
  job.info.task = static_cast<std::uint32_t>(row.integer(28));
  job.rest.tasks = row.bytes(29);
  job.rest.next = static_cast<std::uint32_t>(row.integer(30));
  job.rest.total = static_cast<std::uint32_t>(row.integer(31));
  job.progress.placement.units = unpack_units(row.bytes(32));
  job.progress.steps_usage = unpack_usage(row.bytes(33)).value_or(base::Usage());
  job.info.notices = row.bytes(34);
  job.progress.noticed = static_cast<std::uint32_t>(row.integer(35));
  return job;
}

}  // namespace

Result<Store> Store::open(const std::string& directory) {
  Store store;
  store.boot_ = this_boot();
  if (auto sound = check_directory(directory); !sound) return sound.error();
  auto lock = lock_directory(directory);
  if (!lock) return lock.error();
  store.lock_ = std::move(*lock);
  store.path_ = directory + "/jobs.db";
  if (auto opened = store.open_database(directory); !opened) {
    return opened.error().with_context("{}", store.path_);
  }
  if (auto prepared = store.prepare(); !prepared) {
    return prepared.error().with_context("{}", store.path_);
  }
  return store;
}

Status Store::open_database(const std::string& directory) {
  auto marker = read_all(lock_.get(), 64);
  if (!marker) return marker.error();
  const bool was_there = !marker->empty();
  if (!exists(path_)) {
    if (was_there) {
      return fail(Errc::NotFound, "missing; restore it, or remove {} to start anew without jobs",
                  directory);
    }
    if (auto made = make_database(directory, path_); !made) return made;
  }
  if (auto sound = check_wal(path_ + "-wal"); !sound) return sound;
  auto database = Database::open(path_, Database::Mode::ReadWrite);
  if (!database) return database.error();
  database_ = std::move(*database);
  if (auto sound = check_database(database_); !sound) return sound;
  if (!was_there) {
    if (auto marked = write_all(lock_.get(), kInUse); !marked) return marked;
    ::fsync(lock_.get());
  }
  const char* durable = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL";
  if (auto set = database_.execute(durable); !set) return set;
  return migrate(database_);
}

Status Store::prepare() {
  return prepare_all(
      database_,
      {{statements_.add_job,
        "INSERT INTO jobs (id, user, request, name, command, directory, resources, stdin_rank, "
        "detached, keep_going, immediate_ns, submitted_ns, state, conditions, array_id, "
        "array_task, array_rest, array_total, notices) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?)"},
       {statements_.add_spec, "INSERT INTO specs (job, spec) VALUES (?, ?)"},
       {statements_.save_progress,
        "UPDATE jobs SET state = ?2, attempt = ?3, nodes = ?4, tasks = ?5, cores = ?6, "
        "scheduled_ns = ?7, started_ns = ?8, detached = ?9, restarts = ?10, ending = ?11, "
        "reasons = ?12, exit_code = ?13, start_mark = ?14, filled_ns = ?17, units = ?18, "
        "steps_usage = ?19, noticed = ?20 "
        "WHERE id = ?1 AND state < 5"},
       {statements_.save_end,
        "UPDATE jobs SET state = ?2, attempt = ?3, nodes = ?4, tasks = ?5, cores = ?6, "
        "scheduled_ns = ?7, started_ns = ?8, detached = ?9, restarts = ?10, ending = ?11, "
        "reasons = ?12, exit_code = ?13, start_mark = ?14, ended_ns = ?15, status = ?16, "
        "filled_ns = ?17, units = ?18, steps_usage = ?19, noticed = ?20, profile = ?21 "
        "WHERE id = ?1 AND state < 5"},
       {statements_.drop_spec, "DELETE FROM specs WHERE job = ?"},
       {statements_.drop_settings, "DELETE FROM settings WHERE key IN (?, ?, ?, ?)"},
       {statements_.account,
        "INSERT OR IGNORE INTO accounting (job, user, name, state, exit_code, nodes, tasks, "
        "submitted_ns, started_ns, ended_ns, scheduled_ns, restarts, filled_ns, array_id, "
        "array_task, account, cores, generic, signal, usage, partition_name, licenses) "
        "SELECT id, user, name, state, exit_code, nodes, ?2, "
        "submitted_ns, started_ns, ended_ns, scheduled_ns, restarts, filled_ns, array_id, "
        "array_task, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM jobs "
        "WHERE id = ?1"},
       {statements_.save_resources, "UPDATE jobs SET resources = ?2 WHERE id = ?1 AND state < 5"},
       {statements_.save_request,
        "UPDATE jobs SET resources = ?2, name = ?3, conditions = ?4 WHERE id = ?1 AND state < 5"},
       {statements_.put, "INSERT OR REPLACE INTO settings VALUES (?, ?)"},
       {statements_.drop, "DELETE FROM settings WHERE key = ?"},
       {statements_.save_array,
        "UPDATE jobs SET array_rest = CASE ?2 WHEN '' THEN array_rest ELSE ?2 END, array_next = ?3 "
        "WHERE id = ?1 AND state < 5"},
       {statements_.save_use, "INSERT OR REPLACE INTO uses VALUES (?, ?, ?, ?)"}});
}

Status Store::apply(std::span<const Change> changes) {
  auto transaction = Transaction::begin(database_);
  if (!transaction) return transaction.error();
  auto done = log_ ? apply_recorded(changes) : apply_all(changes);
  if (!done) return done;
  done = transaction->commit();
  if (done && log_) ++log_->sequence;
  return done;
}

Status Store::apply_all(std::span<const Change> changes) {
  for (const Change& change : changes) {
    auto done = std::visit([this](const auto& one) { return apply_one(one); }, change);
    if (!done) return done;
  }
  return {};
}

Status Store::apply_one(const AddJob& change) {
  const JobInfo& info = change.info;
  statements_.add_job.bind(1, number(info.id.value())).bind(2, info.user.value());
  if (info.request.is_none()) {
    statements_.add_job.bind_null(3);
  } else {
    statements_.add_job.bind_blob(3, pack_request(info.request));
  }
  statements_.add_job.bind_text(4, info.name)
      .bind_text(5, info.command)
      .bind_text(6, info.directory)
      .bind_blob(7, info.resources)
      .bind(8, info.stdin_rank)
      .bind(9, change.detached ? 1 : 0)
      .bind(10, info.keep_going ? 1 : 0)
      .bind(11, count(info.immediate))
      .bind(12, count(info.submitted))
      .bind_blob(13, info.conditions)
      .bind(14, number(info.array.value()))
      .bind(15, info.task)
      .bind_text(16, change.rest.tasks)
      .bind(17, change.rest.total)
      .bind_blob(18, info.notices);
  if (auto added = statements_.add_job.run(); !added) return added;
  if (info.is_task()) return {};
  return statements_.add_spec.bind(1, number(info.id.value())).bind_blob(2, change.spec).run();
}

Status Store::apply_one(const SaveProgress& change) {
  statements_.save_progress.bind(1, number(change.id.value()));
  bind_progress(statements_.save_progress, change.progress, boot_);
  if (auto saved = statements_.save_progress.bind(13, change.progress.exit_code).run(); !saved)
    return saved;
  return save_use(change.use);
}

Status Store::save_use(const std::optional<UseSum>& use) {
  if (!use) return {};
  return statements_.save_use.bind_text(1, use->account)
      .bind(2, use->user.value())
      .bind(3, use->core_ms)
      .bind(4, count(use->at))
      .run();
}

Status Store::apply_one(const SaveEnd& change) {
  std::int64_t tasks = 0;
  for (const std::uint32_t on_node : change.progress.placement.tasks_on_node) tasks += on_node;
  statements_.save_end.bind(1, number(change.id.value()));
  bind_progress(statements_.save_end, change.progress, boot_);
  statements_.save_end.bind(13, change.exit_code)
      .bind(15, count(change.ended))
      .bind_blob(16, change.status)
      .bind_blob(21, change.profile);
  if (auto saved = statements_.save_end.run(); !saved) return saved;
  if (auto dropped = statements_.drop_spec.bind(1, number(change.id.value())).run(); !dropped)
    return dropped;
  statements_.drop_settings.bind_text(1, fmt::format("{}{}", kCancelPrefix, change.id))
      .bind_text(2, fmt::format("{}{}", kKeepPrefix, change.id))
      .bind_text(3, fmt::format("{}{}", kRequeuePrefix, change.id))
      .bind_text(4, checkpoint_key(change.id));
  if (auto dropped = statements_.drop_settings.run(); !dropped) return dropped;
  if (change.is_step) return {};
  if (auto saved = save_use(change.use); !saved) return saved;
  std::size_t cores = 0;
  for (const auto& on_node : change.progress.placement.cores) cores += on_node.size();
  return statements_.account.bind(1, number(change.id.value()))
      .bind(2, tasks)
      .bind_text(3, change.account)
      .bind(4, number(cores))
      .bind_text(5, change.generic)
      .bind(6, change.signal)
      .bind_text(7, pack_usage(change.usage))
      .bind_text(8, change.partition)
      .bind_text(9, change.licenses)
      .run();
}

Status Store::apply_one(const SaveResources& change) {
  return statements_.save_resources.bind(1, number(change.id.value()))
      .bind_blob(2, change.resources)
      .run();
}

Status Store::apply_one(const SaveRequest& change) {
  return statements_.save_request.bind(1, number(change.id.value()))
      .bind_blob(2, change.resources)
      .bind_text(3, change.name)
      .bind_blob(4, change.conditions)
      .run();
}

Status Store::apply_one(const SaveSetting& change) {
  if (!change.value) return statements_.drop.bind_text(1, change.key).run();
  return statements_.put.bind_text(1, change.key).bind_blob(2, *change.value).run();
}

Status Store::apply_one(const SaveArray& change) {
  return statements_.save_array.bind(1, number(change.id.value()))
      .bind_text(2, change.tasks)
      .bind(3, change.next)
      .run();
}

Result<Epoch> Store::begin_incarnation() {
  if (log_) return greatest_incarnation();  // it was elected in that term
  if (auto done = database_.execute(
          "UPDATE settings SET value = CAST(value AS INTEGER) + 1 WHERE key = 'head_epoch'");
      !done) {
    return done.error();
  }
  auto statement = database_.prepare("SELECT value FROM settings WHERE key = 'head_epoch'");
  if (!statement) return statement.error();
  auto row = statement->step();
  if (!row) return row.error();
  if (!*row) return fail(Errc::Malformed, "{}: no head_epoch", path_);
  return Epoch(static_cast<std::uint64_t>(statement->integer(0)));
}

Result<JobId> Store::last_job() {
  auto statement = database_.prepare(
      "SELECT MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), 0), "
      "COALESCE((SELECT MAX(job) FROM accounting), 0))");
  if (!statement) return statement.error();
  auto row = statement->step();
  if (!row) return row.error();
  return JobId(*row ? static_cast<std::uint64_t>(statement->integer(0)) : 0);
}

Result<std::vector<StoredJob>> Store::active_jobs() {
  auto statement = database_.prepare(
      "SELECT id, user, request, name, command, directory, resources, stdin_rank, detached, "
      "keep_going, immediate_ns, submitted_ns, state, attempt, nodes, tasks, cores, scheduled_ns, "
      "started_ns, restarts, exit_code, ending, reasons, start_mark, filled_ns, "
      "(SELECT length(spec) FROM specs WHERE job = id), conditions, array_id, array_task, "
      "array_rest, array_next, array_total, units, steps_usage, notices, noticed FROM jobs "
      "WHERE state < 5 ORDER BY id");
  if (!statement) return statement.error();
  std::vector<StoredJob> jobs;
  while (true) {
    auto row = statement->step();
    if (!row) return row.error();
    if (!*row) return jobs;
    jobs.push_back(read_job(*statement, boot_));
  }
}

Result<std::map<std::string, std::string>> Store::settings() {
  auto statement = database_.prepare("SELECT key, value FROM settings");
  if (!statement) return statement.error();
  std::map<std::string, std::string> settings;
  while (true) {
    auto row = statement->step();
    if (!row) return row.error();
    if (!*row) return settings;
    settings[statement->bytes(0)] = statement->bytes(1);
  }
}

Result<std::vector<UseSum>> Store::uses() {
  auto statement = database_.prepare("SELECT account, user, core_ms, at_ns FROM uses");
  if (!statement) return statement.error();
  std::vector<UseSum> uses;
  while (true) {
    auto row = statement->step();
    if (!row) return row.error();
    if (!*row) return uses;
    uses.push_back({statement->bytes(0), UserId(static_cast<std::uint32_t>(statement->integer(1))),
                    statement->integer(2), WallTime(Duration(statement->integer(3)))});
  }
}

Status Store::prune(std::int64_t keep_finished) {
  auto statement = database_.prepare(
      "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state >= 5 ORDER BY ended_ns DESC "
      "LIMIT -1 OFFSET ?)");
  if (!statement) return statement.error();
  return statement->bind(1, keep_finished).run();
}

}  // namespace score::head
