#pragma once
// The head's memory on disk: jobs, settings, incarnations, accounting. SQLite in WAL mode with
// synchronous=FULL: what a committed transaction wrote survives a crash of the machine.
//
//   Store        the only writer. Changes come as plain values, one transaction an apply(). After
//                open() it belongs to the commit thread (commit_log.hpp).
//   StoreReader  read-only lookups by key for the loop's thread; sees what is committed.
//
// The states of jobs are stored as numbers of base::JobState; finished jobs keep a row (for ids,
// repeated requests and `scq`), their specification is dropped.

#include "base/model/model.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/text/shared_text.hpp"
#include "base/units.hpp"
#include "gang/leadership/lease.hpp"
#include "scored/head/store/sqlite.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace score::head {

// What a submission fixes.
struct JobInfo {
  JobId id;
  UserId user;
  RequestId request;             // none: the client gave none
  std::string name;              // as given
  SharedText command;            // for display, escaped
  SharedText directory;          // for display, escaped
  SharedText resources;          // serialised wire::ResourceRequest
  std::int64_t stdin_rank = -2;  // -1 all, -2 none
  bool keep_going = false;
  Duration immediate{0};  // 0: waits as long as it takes
  WallTime submitted{};
  Bytes spec_bytes{0};  // of its specification, on disk
  // Of resources; the store does not read them.
  JobId step_of{0};        // a step: the job that it is inside
  std::uint32_t step = 0;  // its number within that job
  bool allocation = false;
  SharedText conditions{};  // what it waits for, see pack_conditions(); empty: nothing
  JobId array{};            // the array that it is a task of; its own number: it is an array
  std::uint32_t task = 0;   // its number in the array
  SharedText account{};     // of resources too; empty: none

  [[nodiscard]] bool is_array() const { return array != JobId() && array == id; }

  [[nodiscard]] bool is_task() const { return array != JobId() && array != id; }

  friend bool operator==(const JobInfo&, const JobInfo&) = default;
};

struct Placement {
  AttemptId attempt;
  std::vector<std::string> nodes;                        // [node index]
  std::vector<std::uint32_t> tasks_on_node;              // [node index]
  std::vector<std::vector<std::uint32_t>> cores;         // [node index]
  std::vector<std::vector<base::GenericShare>> units{};  // [node index]; empty: none

  friend bool operator==(const Placement&, const Placement&) = default;
};

// What changes while it is active.
struct JobProgress {
  JobState state = JobState::Pending;
  Placement placement;
  Duration scheduled{0};
  Duration filled{0};          // see gang::JobView
  WallTime started{};          // 0: not yet
  TimePoint start_mark{};      // the same by the monotonic clock; 0: not yet, or before a boot
  bool detached = false;       // goes on without a front end
  std::uint32_t restarts = 0;  // how often it was requeued
  // While it is Completing: how it will end.
  std::optional<JobState> ending;
  std::int32_t exit_code = 0;
  std::vector<std::string> reasons;

  friend bool operator==(const JobProgress&, const JobProgress&) = default;
};

// What is left of an array: its tasks from `next` on, as parse_array() reads them, of `total` that
// it had when it was submitted.
struct ArrayRest {
  std::string tasks{};
  std::uint32_t next = 0;
  std::uint32_t total = 0;

  friend bool operator==(const ArrayRest&, const ArrayRest&) = default;
};

struct StoredJob {
  JobInfo info;
  JobProgress progress;
  ArrayRest rest{};  // of an array

  friend bool operator==(const StoredJob&, const StoredJob&) = default;
};

// ---- changes ---------------------------------------------------------------------------------

struct AddJob {
  JobInfo info;
  bool detached = false;
  std::string spec;  // serialised wire::LaunchSpec; of a task of an array the array's holds
  ArrayRest rest{};  // of an array
};

// What a user has used in an account, decayed to this time. Stored with the progress of the job
// that used the last of it, so that after a crash nothing is counted twice or lost.
struct UseSum {
  std::string account;
  UserId user;
  std::int64_t core_ms = 0;  // cores x scheduled time
  WallTime at{};

  friend bool operator==(const UseSum&, const UseSum&) = default;
};

struct SaveProgress {
  JobId id;
  JobProgress progress;
  std::optional<UseSum> use{};
};

// The final state and the accounting row. The job's specification and settings go.
struct SaveEnd {
  JobId id;
  JobProgress progress;  // state is final
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;  // as in wire::JobStatus
  WallTime ended{};
  std::string status;     // serialised wire::JobStatus, for later listings
  bool is_step = false;   // its time is its job's: no accounting row
  std::string account{};  // for that row
  std::string generic{};  // likewise: what it asked for on each node
  std::optional<UseSum> use{};
};

// Its user or an operator changed what it asks for (weight, hold).
struct SaveResources {
  JobId id;
  std::string resources;  // serialised wire::ResourceRequest
};

// Settings about a job: this and its number.
inline constexpr std::string_view kCancelPrefix = "cancel:";
inline constexpr std::string_view kKeepPrefix = "keep:";

struct SaveSetting {
  std::string key;
  std::optional<std::string> value;  // nullopt: forget it
};

// The tasks before `next` have become jobs or were cancelled.
struct SaveArray {
  JobId id;
  std::string tasks;  // without those that were cancelled; "": as it is on disk
  std::uint32_t next = 0;
};

// Files beside the database that both of two heads need: their text is a setting of this name.
inline constexpr std::string_view kFilePrefix = "file:";
inline constexpr std::string_view kNodeKeysFile = "node-keys";
inline constexpr std::string_view kUsedTokensFile = "setup-tokens-used";

struct Barrier {};  // changes nothing: answered when what was added before is durable

using Change =
    std::variant<AddJob, SaveProgress, SaveEnd, SaveResources, SaveSetting, SaveArray, Barrier>;

class Store {
 public:
  // Opens or makes DIRECTORY/jobs.db and locks the directory against a second head. Errors, all
  // with a line an operator can act upon: another head has it (Busy), the file is damaged, of
  // another program or version (Malformed), it was there before and is gone or empty (NotFound),
  // and the kernel's (ENOSPC, EACCES ...).
  [[nodiscard]] static Result<Store> open(const std::string& directory);

  // All of it is durable, or (error) nothing was changed.
  [[nodiscard]] Status apply(std::span<const Change> changes);

  // This start's number: larger than every one before, durable when it returns.
  [[nodiscard]] Result<Epoch> begin_incarnation();
  // The largest number ever given to a job; 0: none.
  [[nodiscard]] Result<JobId> last_job();
  // Jobs that have not ended, ascending.
  [[nodiscard]] Result<std::vector<StoredJob>> active_jobs();
  [[nodiscard]] Result<std::map<std::string, std::string>> settings();
  [[nodiscard]] Result<std::vector<UseSum>> uses();
  // Drops the oldest finished jobs above the limit (their accounting rows stay).
  [[nodiscard]] Status prune(std::int64_t keep_finished);

  [[nodiscard]] const std::string& path() const { return path_; }

  // ---- with two heads (docs/adr/0089)
  // The greatest incarnation that was stored.
  [[nodiscard]] Result<Epoch> greatest_incarnation();
  // At least this one.
  [[nodiscard]] Status raise_incarnation(Epoch least);
  // How far its log goes. A store that knows none yet, or whose last head was a single one, counts
  // by its incarnation; that is stored.
  [[nodiscard]] Result<gang::LogPosition> open_log();
  // Of a single head: its changes are in no log.
  [[nodiscard]] Status forget_log();
  // From now on each apply() is a transaction of the log of this term, from 1 on.
  [[nodiscard]] Status begin_log(Epoch term);

  [[nodiscard]] bool has_log() const { return log_.has_value(); }

  [[nodiscard]] std::uint64_t log_sequence() const { return log_ ? log_->sequence : 0; }

  // What the last apply() changed, for apply_shipped() of the other head; once.
  [[nodiscard]] std::string take_changes() { return std::exchange(changes_, {}); }

  // As the follower. Errors: Malformed: ask for a copy of the whole.
  [[nodiscard]] Status apply_shipped(std::string_view changes, gang::LogPosition after);

  // What is committed, as a file.
  [[nodiscard]] Status copy_to(const std::string& path) const { return database_.copy_to(path); }

  // Writes the files whose text is in the settings and differs.
  [[nodiscard]] Status write_files();

  // The file becomes the database; the one before is kept beside it. Errors leave it as it was.
  [[nodiscard]] Status replace_with(const std::string& path);

 private:
  Store() = default;
  [[nodiscard]] Status apply_all(std::span<const Change> changes);
  [[nodiscard]] Status apply_recorded(std::span<const Change> changes);
  [[nodiscard]] Status put_position(gang::LogPosition position);
  [[nodiscard]] Result<std::optional<gang::LogPosition>> stored_position();
  [[nodiscard]] Status open_database(const std::string& directory);
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status apply_one(const AddJob& change);
  [[nodiscard]] Status apply_one(const SaveProgress& change);
  [[nodiscard]] Status apply_one(const SaveEnd& change);
  [[nodiscard]] Status apply_one(const SaveResources& change);
  [[nodiscard]] Status apply_one(const SaveSetting& change);
  [[nodiscard]] Status apply_one(const SaveArray& change);

  [[nodiscard]] Status apply_one(const Barrier&) { return {}; }

  [[nodiscard]] Status save_use(const std::optional<UseSum>& use);

  std::string path_;
  std::string boot_;  // which boot of this machine it is
  UniqueFd lock_;
  Database database_;
  Statement add_job_, add_spec_, save_progress_, save_end_, drop_spec_, drop_settings_, account_,
      save_resources_, put_, drop_, save_array_, save_use_;
  std::optional<gang::LogPosition> log_;  // of a head in charge, with a follower to come
  std::string changes_;
};

// A job that ended, as it is accounted.
struct AccountedJob {
  JobId id;
  UserId user;
  std::string name;
  JobState state{};
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;         // as in wire::JobStatus
  std::vector<std::string> nodes;  // [node index]; empty: never placed
  std::uint32_t tasks = 0;
  WallTime submitted{}, started{}, ended{};  // started 0: never
  Duration scheduled{0}, filled{0};
  std::uint32_t restarts = 0;
  JobId array{};           // see JobInfo
  std::uint32_t task = 0;  // see JobInfo
  std::string account;
  std::uint32_t cores = 0;
  std::string generic;  // "gpu:2" on each node; empty: none
};

struct AccountQuery {
  std::optional<UserId> user;  // nullopt: all
  WallTime since{};
  JobId after;  // of those that ended at `since`, only with greater ids
  std::int64_t limit = 0;
  std::optional<JobId> job{};  // only this one, and the tasks of it
};

class StoreReader {
 public:
  // path: of an open Store.
  [[nodiscard]] static Result<StoreReader> open(const std::string& path);

  // Errors: NotFound (ended, or never there).
  [[nodiscard]] Result<std::string> spec(JobId job);
  [[nodiscard]] Result<std::optional<JobId>> find_request(UserId user, const RequestId& request);
  // The serialised wire::JobStatus of a finished job. Errors: NotFound.
  [[nodiscard]] Result<std::string> ended_status(JobId job);
  // How a job ended, also one whose row in the list of jobs is gone. Errors: NotFound.
  [[nodiscard]] Result<JobState> outcome(JobId job);

  struct EndedTasks {
    std::uint32_t completed = 0;
    std::uint32_t broken = 0;  // neither Completed nor Cancelled
  };

  // How many tasks of an array ended in which way.
  [[nodiscard]] Result<EndedTasks> ended_tasks(JobId array);
  // The job that a task of an array became, if it has ended. Errors: NotFound.
  [[nodiscard]] Result<JobId> ended_task(JobId array, std::uint32_t task);
  // Those of the last ones to end, latest first; of one user, or of all; with_tasks: also the tasks
  // of arrays.
  [[nodiscard]] Result<std::vector<std::string>> lately_ended(std::optional<UserId> user,
                                                              std::int64_t limit,
                                                              bool with_tasks = true);
  // In the order of their ends, those of one end by id.
  [[nodiscard]] Result<std::vector<AccountedJob>> accounting(const AccountQuery& query);

 private:
  Database database_;
  Statement spec_, request_, status_, ended_, ended_of_user_, ended_once_, ended_once_of_user_,
      account_, account_of_user_, account_of_job_, outcome_, ended_tasks_, ended_task_;
};

}  // namespace score::head
