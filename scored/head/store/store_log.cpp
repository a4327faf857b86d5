// This file has the parts of the store for a cluster with two heads (docs/adr/0089). The position
// of the log is a setting, so the transaction that it counts also stores it and is shipped with it.
//
// SQLite trusts a changeset and may read a damaged one forever. So a checksum follows the bytes of
// each one, and is compared before SQLite reads them.
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "pmlib/wire/crc32c.hpp"
#include "scored/head/store/schema.hpp"
#include "scored/head/store/store.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace score::head {
namespace {

constexpr std::string_view kPosition = "log_position";

std::string vote_key(gang::HeadIndex head) {
  return fmt::format("log_vote.{}", head);
}

std::string pack_position(gang::LogPosition position) {
  return fmt::format("{}:{}", position.term, position.sequence);
}

std::optional<gang::LogPosition> unpack_position(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const auto term = parse_number<std::uint64_t>(text.substr(0, colon));
  const auto sequence = parse_number<std::uint64_t>(text.substr(colon + 1));
  if (!term || !sequence) return std::nullopt;
  return gang::LogPosition{Epoch(*term), *sequence};
}

constexpr std::size_t kChecksumBytes = 4;

void append_checksum(std::string& changes) {
  const std::uint32_t sum = pm::crc32c(0, changes.data(), changes.size());
  for (std::size_t i = 0; i < kChecksumBytes; ++i) {
    changes.push_back(static_cast<char>(sum >> (8 * i) & 0xff));
  }
}

// Returns the bytes without the checksum; nullopt if the checksum is wrong.
std::optional<std::string_view> checked(std::string_view shipped) {
  if (shipped.size() < kChecksumBytes) return std::nullopt;
  const std::string_view changes = shipped.substr(0, shipped.size() - kChecksumBytes);
  std::string expected(changes);
  append_checksum(expected);
  if (expected != shipped) return std::nullopt;
  return changes;
}

Status sync_file(const std::string& path) {
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return fd.error();
  if (::fsync(fd->get()) != 0) return fail(errno_code(errno), "cannot sync {}", path);
  return {};
}

}  // namespace

Result<Epoch> Store::greatest_incarnation() {
  auto value = database_.value("SELECT value FROM settings WHERE key = 'head_epoch'");
  if (!value) return value.error();
  const auto number = parse_number<std::uint64_t>(*value);
  if (!number) return fail(Errc::Malformed, "{}: no head_epoch", path_);
  return Epoch(*number);
}

Status Store::raise_incarnation(Epoch least) {
  auto statement = database_.prepare(
      "UPDATE settings SET value = MAX(CAST(value AS INTEGER), ?) WHERE key = 'head_epoch'");
  if (!statement) return statement.error();
  return statement->bind(1, static_cast<std::int64_t>(least.value())).run();
}

// A copy of the other head's database brings that head's votes along, so each head has its own
// setting.
Status Store::store_vote(gang::HeadIndex self, Epoch term) {
  auto transaction = Transaction::begin(database_);
  if (!transaction) return transaction.error();
  if (auto raised = raise_incarnation(term); !raised) return raised;
  const std::string value = std::to_string(term.value());
  if (auto put = statements_.put.bind_text(1, vote_key(self)).bind_blob(2, value).run(); !put)
    return put;
  return transaction->commit();
}

Result<gang::StoredTerms> Store::stored_terms(gang::HeadIndex self) {
  const auto greatest = greatest_incarnation();
  if (!greatest) return greatest.error();
  const auto position = stored_position();
  if (!position) return position.error();
  const auto stored = settings();
  if (!stored) return stored.error();
  const auto find = [&](const std::string& key) -> std::optional<std::uint64_t> {
    const auto at = stored->find(key);
    if (at == stored->end()) return std::nullopt;
    const auto number = parse_number<std::uint64_t>(at->second);
    return number ? std::optional(*number) : std::nullopt;
  };
  // The term of a log that the other head writes was granted to it. A database of an older release
  // has no vote.
  Epoch granted;
  if (*position && find(std::string(kLogHead)) == gang::other_head(self))
    granted = (*position)->term;
  if (const auto vote = find(vote_key(self))) {
    granted = std::max(granted, Epoch(*vote));
  } else if (granted == Epoch()) {
    granted = *greatest;
  }
  return gang::StoredTerms{*greatest, granted};
}

Status Store::put_position(gang::LogPosition position) {
  return statements_.put.bind_text(1, kPosition).bind_blob(2, pack_position(position)).run();
}

Result<std::optional<gang::LogPosition>> Store::stored_position() {
  auto value = database_.value("SELECT value FROM settings WHERE key = 'log_position'");
  if (!value) return value.error();
  return unpack_position(*value);
}

Result<gang::LogPosition> Store::open_log() {
  auto stored = stored_position();
  if (!stored) return stored.error();
  if (*stored) return **stored;
  auto incarnation = greatest_incarnation();
  if (!incarnation) return incarnation.error();
  const gang::LogPosition first{*incarnation, 0};
  if (auto put = put_position(first); !put) return put.error();
  return first;
}

Status Store::forget_log() {
  return statements_.drop.bind_text(1, kPosition).run();
}

Status Store::begin_log(Epoch term) {
  const gang::LogPosition first{term, 0};
  if (auto put = put_position(first); !put) return put;
  log_ = first;
  return {};
}

Status Store::apply_recorded(std::span<const Change> changes) {
  auto recorder = Recorder::begin(database_);
  if (!recorder) return recorder.error();
  if (auto done = apply_all(changes); !done) return done;
  if (auto put = put_position({log_->term, log_->sequence + 1}); !put) return put;
  auto recorded = recorder->changes();
  if (!recorded) return recorded.error();
  changes_ = std::move(*recorded);
  append_checksum(changes_);
  return {};
}

Status Store::apply_shipped(std::string_view shipped, gang::LogPosition after) {
  const auto changes = checked(shipped);
  if (!changes) {
    return fail(Errc::Malformed, "the checksum of {} bytes of shipped changes is wrong",
                shipped.size());
  }
  auto transaction = Transaction::begin(database_);
  if (!transaction) return transaction.error();
  if (auto applied = database_.apply_changes(*changes); !applied) return applied;
  auto reached = stored_position();
  if (!reached) return reached.error();
  if (*reached != after)
    return fail(Errc::Malformed, "the shipped changes are for a different position");
  return transaction->commit();
}

Status Store::write_files() {
  auto stored = settings();
  if (!stored) return stored.error();
  const std::string directory = path_.substr(0, path_.rfind('/'));
  for (const std::string_view name :
       {kNodeKeysFile, kUsedTokensFile, kPersonalTokensFile, kNodeChangesFile}) {
    const auto text = stored->find(fmt::format("{}{}", kFilePrefix, name));
    if (text == stored->end()) continue;
    const std::string path = fmt::format("{}/{}", directory, name);
    const auto there = read_file(path, limits::kMaxConfigBytes);
    if (there && *there == text->second) continue;
    if (auto written = replace_file(path, text->second, 0600); !written) return written;
  }
  return {};
}

// The replaced database may have changes that were never acknowledged, or the replacement may be an
// administrator's mistake, so one old database is kept.
Status Store::replace_with(const std::string& path) {
  {
    auto fresh = Database::open(path, Database::Mode::ReadWrite);
    if (!fresh) return fresh.error();
    if (auto sound = check_database(*fresh); !sound) {
      return sound.error().with_context("the shipped database");
    }
    if (auto wal = fresh->execute("PRAGMA journal_mode = DELETE"); !wal) return wal;
  }
  if (auto synced = sync_file(path); !synced) return synced;
  statements_ = Statements();
  database_ = Database();  // the last connection removes the write-ahead log
  const std::string before = path_ + ".before";
  ::unlink(before.c_str());
  if (::link(path_.c_str(), before.c_str()) != 0) {
    return fail(errno_code(errno), "cannot link {} to {}", path_, before);
  }
  if (::rename(path.c_str(), path_.c_str()) != 0) {
    return fail(errno_code(errno), "cannot rename {} to {}", path, path_);
  }
  const std::string directory = path_.substr(0, path_.rfind('/'));
  if (auto synced = sync_file(directory); !synced) return synced;
  ::lseek(lock_.get(), 0, SEEK_SET);
  if (auto opened = open_database(directory); !opened) return opened;
  return prepare();
}

}  // namespace score::head
