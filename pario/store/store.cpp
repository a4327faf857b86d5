// The store has these tables: "entries" has (parent, name) -> (id, mode), "inodes" id -> Inode,
// "others" the identity, the next number, and a key for each sealed directory, "answers" (client,
// slot) -> answer, "values" (id, name) -> bytes, "locks" id -> list of FileLock (values.cpp).
// Numbers in keys are big-endian, so that the entries of a directory follow each other.
#include "pario/store/store.hpp"

#include "pario/core/bytes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <utility>

namespace score::pario {
namespace {

// This is address space, not memory: the file grows as it is filled.
constexpr std::size_t kMapBytes = std::size_t{64} << 30;
constexpr std::uint64_t kNumbersPerWrite = 4'096;
// Pages that a change frees are available only after the next one, so even removals need some.
constexpr std::uint64_t kReserveBytes = std::uint64_t{1} << 20;
constexpr std::string_view kNextKey = "next";
constexpr std::string_view kMoveKey = "move ";
constexpr std::string_view kIdentityKey = "identity";

int errno_of(int result) {
  if (result == 0) return 0;
  if (result == MDB_NOTFOUND) return ENOENT;
  if (result == MDB_MAP_FULL || result == MDB_TXN_FULL) return ENOSPC;
  return result > 0 ? result : EIO;
}

std::string key_of(FileId id, std::string_view name = {}) {
  const std::uint64_t big = __builtin_bswap64(id);
  std::string key(reinterpret_cast<const char*>(&big), sizeof big);
  key += name;
  return key;
}

std::string sealed_key(FileId id) {
  return "sealed" + key_of(id);
}

std::string changed_key(FileId id) {
  return "changed" + key_of(id);
}

std::string end_key(FileId id) {
  return "end" + key_of(id);
}

std::string answer_key(const Once& once) {
  std::string key = key_of(once.client);
  key += static_cast<char>(once.slot);
  return key;
}

std::string move_key(FileId parent, std::string_view name) {
  return std::string(kMoveKey) + key_of(parent, name);
}

MDB_val value_of(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}

std::string_view text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <typename T>
int copy_to(T& value, std::string_view bytes) {
  if (bytes.size() != sizeof value) return EIO;
  std::memcpy(&value, bytes.data(), sizeof value);
  return 0;
}

struct StoredTarget {
  FileId id = 0;
  std::uint32_t mode = 0;
  std::uint32_t zero = 0;
};

struct StoredAnswer {
  std::uint32_t sequence = 0;
  std::uint32_t body_bytes = 0;
  std::int64_t time_ns = 0;
  std::uint64_t number = 0;
  std::array<char, sizeof(Attributes)> body{};
};

// Returns true for rows of the table "others" that are equal on both replicas.
bool is_copied(std::string_view key) {
  return key == kNextKey || key.starts_with("sealed") || key.starts_with("changed") ||
         key.starts_with("end") || key.starts_with("kept");
}

// Inodes of releases before links and groups end after their times.
constexpr std::size_t kOldInodeBytes = offsetof(Inode, accessed_ns);

bool is_inode(std::string_view bytes) {
  return bytes.size() == sizeof(Inode) || bytes.size() == kOldInodeBytes;
}

// Rows that a different server sends must not cause a failure in a reader.
bool is_row(std::uint32_t table, std::string_view key, std::string_view value) {
  constexpr std::size_t kIdBytes = sizeof(FileId);
  if (table == 0) {
    return key.size() > kIdBytes && is_valid_name(key.substr(kIdBytes)) &&
           value.size() == sizeof(StoredTarget);
  }
  if (table == 1) return key.size() == kIdBytes && is_inode(value);
  if (table == 3) return key.size() == kIdBytes + 1 && value.size() == sizeof(StoredAnswer);
  if (table == 4) {
    return key.size() >= kIdBytes && key.size() <= kIdBytes + kMaxNameBytes &&
           value.size() <= kMaxValueBytes;
  }
  if (table == 5) return key.size() == kIdBytes && value.size() % sizeof(FileLock) == 0;
  return is_copied(key) && key.size() <= 7 + kIdBytes &&
         value.size() == (key.starts_with("sealed") ? 0 : sizeof(std::uint64_t));
}

}  // namespace

int Store::open(const std::string& directory, const Identity& identity,
                std::unique_ptr<Store>& store, std::string& message) {
  std::unique_ptr<Store> made(new Store(identity.server));
  const int error = made->start(directory, identity, message);
  if (error == 0) store = std::move(made);
  return error;
}

Store::~Store() {
  if (write_ != nullptr) mdb_txn_abort(write_);
  if (read_ != nullptr) mdb_txn_abort(read_);
  if (environment_ != nullptr) mdb_env_close(environment_);
}

int Store::start(const std::string& directory, const Identity& identity, std::string& message) {
  int result = mdb_env_create(&environment_);
  if (result == 0) result = mdb_env_set_mapsize(environment_, kMapBytes);
  if (result == 0) result = mdb_env_set_maxdbs(environment_, 6);
  // The caller holds a lock of the directory, and this process has one thread.
  constexpr unsigned kFlags = MDB_NOSYNC | MDB_NOLOCK | MDB_NORDAHEAD | MDB_NOTLS;
  if (result == 0) result = mdb_env_open(environment_, directory.c_str(), kFlags, 0600);
  MDB_txn* transaction = nullptr;
  int error = errno_of(result);
  if (error == 0) error = writing(transaction);
  for (const auto& [name, table] : {std::pair{"entries", &entries_},
                                    {"inodes", &inodes_},
                                    {"others", &others_},
                                    {"answers", &answers_},
                                    {"values", &values_},
                                    {"locks", &locks_}}) {
    if (error == 0) error = errno_of(mdb_dbi_open(transaction, name, MDB_CREATE, table));
  }
  if (error == 0) error = errno_of(mdb_env_get_fd(environment_, &fd_));
  if (error == 0) error = check_identity(identity, message);
  if (error == 0) error = commit();
  if (error != 0 && message.empty()) message = std::string("metadata: ") + std::strerror(error);
  return error;
}

int Store::check_identity(const Identity& identity, std::string& message) {
  const std::string mine = identity.volume + " server " + std::to_string(identity.server) + " of " +
                           std::to_string(identity.servers) + ", stripe " +
                           std::to_string(identity.stripe);
  identity_ = mine;
  std::string_view stored;
  int error = get_value(others_, kIdentityKey, stored);
  if (error == 0 && stored != mine) {
    message = "the directory belongs to volume " + std::string(stored) + ", not to " + mine;
    return EINVAL;
  }
  if (error == ENOENT) {
    error = put_value(others_, kIdentityKey, mine);
    next_ = 2;  // 1 is the root directory
    if (error == 0 && identity.server == 0) error = put(kRootId, Inode{S_IFDIR | 0700, 0, 0, 0});
  } else if (error == 0) {
    error = get_value(others_, kNextKey, stored);
    if (error == 0) error = copy_to(next_, stored);
    if (error == ENOENT) {
      next_ = 2;
      error = 0;
    }
  }
  next_end_ = next_;
  return error;
}

int Store::reading(MDB_txn*& transaction) {
  transaction = write_;
  if (write_ != nullptr) return 0;
  int result = 0;
  if (read_ == nullptr) {
    result = mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &read_);
  } else if (!is_reading_) {
    result = mdb_txn_renew(read_);
  }
  is_reading_ = result == 0;
  transaction = read_;
  return errno_of(result);
}

int Store::writing(MDB_txn*& transaction) {
  int result = 0;
  if (write_ == nullptr) {
    if (is_reading_) mdb_txn_reset(read_);
    is_reading_ = false;
    result = mdb_txn_begin(environment_, nullptr, 0, &write_);
    if (result != 0) write_ = nullptr;
  }
  transaction = write_;
  return errno_of(result);
}

int Store::commit() {
  if (is_reading_) mdb_txn_reset(read_);
  is_reading_ = false;
  if (write_ == nullptr) return 0;
  return errno_of(mdb_txn_commit(std::exchange(write_, nullptr)));
}

// On a full disk files can still be removed, because the pages for that are allocated before they
// are needed.
bool Store::keep_reserve() {
  MDB_envinfo info{};
  MDB_stat stat{};
  mdb_env_info(environment_, &info);
  mdb_env_stat(environment_, &stat);
  const std::uint64_t used = (info.me_last_pgno + 1) * stat.ms_psize;
  if (used + kReserveBytes <= allocated_) return true;
  const std::uint64_t wanted = used + 2 * kReserveBytes;
  const int result = fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(wanted));
  if (result != 0 && errno != EOPNOTSUPP) return false;
  allocated_ = wanted;
  return true;
}

int Store::get_value(MDB_dbi table, std::string_view key, std::string_view& value) {
  MDB_txn* transaction = nullptr;
  if (const int error = reading(transaction)) return error;
  MDB_val name = value_of(key);
  MDB_val found{};
  const int error = errno_of(mdb_get(transaction, table, &name, &found));
  if (error == 0) value = text_of(found);
  return error;
}

int Store::put_value(MDB_dbi table, std::string_view key, std::string_view value) {
  MDB_txn* transaction = nullptr;
  if (const int error = writing(transaction)) return error;
  MDB_val name = value_of(key);
  MDB_val content = value_of(value);
  return errno_of(mdb_put(transaction, table, &name, &content, 0));
}

int Store::remove_value(MDB_dbi table, std::string_view key) {
  MDB_txn* transaction = nullptr;
  if (const int error = writing(transaction)) return error;
  MDB_val name = value_of(key);
  return errno_of(mdb_del(transaction, table, &name, nullptr));
}

template <typename T>
int Store::get_other(std::string_view key, T& value) {
  std::string_view bytes;
  const int error = get_value(others_, key, bytes);
  return error != 0 ? error : copy_to(value, bytes);
}

int Store::remove_other(std::string_view key) {
  const int error = remove_value(others_, key);
  return error == ENOENT ? 0 : error;
}

int Store::find(FileId parent, std::string_view name, Target& target) {
  std::string_view value;
  StoredTarget stored;
  int error = get_value(entries_, key_of(parent, name), value);
  if (error == 0) error = copy_to(stored, value);
  if (error == 0) target = {stored.id, stored.mode};
  return error;
}

int Store::put(FileId parent, std::string_view name, const Target& target) {
  const StoredTarget stored{target.id, target.mode, 0};
  return put_value(entries_, key_of(parent, name), bytes_of(stored));
}

int Store::remove(FileId parent, std::string_view name) {
  return remove_value(entries_, key_of(parent, name));
}

int Store::has_entries(FileId parent, bool& has) {
  std::string bytes;
  const int error = read_entries(parent, {}, 1, bytes);
  has = !bytes.empty();
  return error;
}

int Store::read_entries(FileId parent, std::string_view after, std::size_t most,
                        std::string& bytes) {
  MDB_txn* transaction = nullptr;
  if (const int error = reading(transaction)) return error;
  MDB_cursor* cursor = nullptr;
  int result = mdb_cursor_open(transaction, entries_, &cursor);
  if (result != 0) return errno_of(result);
  const std::string begin = key_of(parent, after);
  const std::string_view prefix = std::string_view(begin).substr(0, sizeof(FileId));
  MDB_val key = value_of(begin);
  MDB_val value{};
  result = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  if (result == 0 && text_of(key) == begin) result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
  while (result == 0 && text_of(key).starts_with(prefix)) {
    StoredTarget stored;
    if (copy_to(stored, text_of(value)) != 0) break;
    const std::string_view name = text_of(key).substr(sizeof(FileId));
    append_entry(stored.id, stored.mode, name, bytes);
    if (bytes.size() + kMaxNameBytes + 16 > most) break;
    result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
  }
  mdb_cursor_close(cursor);
  return result == MDB_NOTFOUND ? 0 : errno_of(result);
}

int Store::get(FileId id, Inode& inode) {
  std::string_view value;
  if (const int error = get_value(inodes_, key_of(id), value)) return error;
  if (!is_inode(value)) return EIO;
  inode = {};
  std::memcpy(&inode, value.data(), value.size());
  return 0;
}

int Store::put(FileId id, const Inode& inode) {
  return put_value(inodes_, key_of(id), bytes_of(inode));
}

int Store::remove(FileId id) {
  int error = drop_values(id);
  if (error == 0) error = put_locks(id, {});
  if (error == 0) error = set_kept(id, false);
  return error != 0 ? error : remove_value(inodes_, key_of(id));
}

int Store::is_sealed(FileId id, bool& sealed) {
  std::string_view value;
  const int error = get_value(others_, sealed_key(id), value);
  sealed = error == 0;
  return error == ENOENT ? 0 : error;
}

int Store::set_sealed(FileId id, bool sealed) {
  if (sealed) return put_value(others_, sealed_key(id), "");
  return remove_other(sealed_key(id));
}

int Store::get_changed(FileId id, std::int64_t& changed_ns) {
  changed_ns = 0;
  const int error = get_other(changed_key(id), changed_ns);
  return error == ENOENT ? 0 : error;
}

int Store::put_changed(FileId id, std::int64_t changed_ns) {
  return put_value(others_, changed_key(id), bytes_of(changed_ns));
}

int Store::remove_changed(FileId id) {
  return remove_other(changed_key(id));
}

int Store::get_end(FileId id, std::uint64_t& end) {
  end = 0;
  const int error = get_other(end_key(id), end);
  return error == ENOENT ? 0 : error;
}

int Store::put_end(FileId id, std::uint64_t end) {
  return put_value(others_, end_key(id), bytes_of(end));
}

int Store::remove_end(FileId id) {
  return remove_other(end_key(id));
}

int Store::get_answer(const Once& once, Answered& answered) {
  std::string_view value;
  StoredAnswer stored;
  if (const int error = get_value(answers_, answer_key(once), value)) return error;
  if (copy_to(stored, value) != 0) return ENOENT;  // of a release with other attributes
  if (stored.body_bytes > stored.body.size()) return EIO;
  answered = {
      stored.sequence, stored.time_ns, stored.number, {stored.body.data(), stored.body_bytes}};
  return 0;
}

int Store::put_answer(const Once& once, const Answered& answered) {
  StoredAnswer stored{answered.sequence,
                      static_cast<std::uint32_t>(answered.body.size()),
                      answered.time_ns,
                      answered.number,
                      {}};
  if (answered.body.size() > stored.body.size()) return EINVAL;
  std::ranges::copy(answered.body, stored.body.begin());
  return put_value(answers_, answer_key(once), bytes_of(stored));
}

int Store::forget_answers(std::int64_t before_ns) {
  constexpr int kMostRows = 1'000;
  MDB_txn* transaction = nullptr;
  if (const int error = reading(transaction)) return error;
  MDB_cursor* cursor = nullptr;
  int result = mdb_cursor_open(transaction, answers_, &cursor);
  if (result != 0) return errno_of(result);
  MDB_val key = value_of(forgotten_);
  MDB_val value{};
  std::vector<std::string> old;
  result = mdb_cursor_get(cursor, &key, &value, forgotten_.empty() ? MDB_FIRST : MDB_SET_RANGE);
  for (int rows = 0; result == 0 && rows < kMostRows; ++rows) {
    StoredAnswer stored;
    forgotten_ = text_of(key);
    if (copy_to(stored, text_of(value)) != 0 || stored.time_ns < before_ns) {
      old.push_back(forgotten_);
    }
    result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
  }
  mdb_cursor_close(cursor);
  if (result == MDB_NOTFOUND) forgotten_.clear();  // start at the beginning next time
  int error = result == MDB_NOTFOUND ? 0 : errno_of(result);
  for (const std::string& one : old) {
    if (error == 0) error = remove_value(answers_, one);
  }
  return error;
}

int Store::make_id(FileId& id) {
  if (!keep_reserve()) return ENOSPC;
  if (next_ == next_end_) {
    const std::uint64_t end = next_ + kNumbersPerWrite;
    if (const int error = put_value(others_, kNextKey, bytes_of(end))) return error;
    next_end_ = end;
  }
  id = pario::make_id(next_++, server_);
  return 0;
}

int Store::take_id(FileId id) {
  const std::uint64_t count = count_of(id);
  if (count < next_) return 0;
  next_ = count + 1;
  if (next_ <= next_end_) return 0;
  next_end_ = next_ + kNumbersPerWrite;
  return put_value(others_, kNextKey, bytes_of(next_end_));
}

int Store::get_number(std::string_view name, std::uint64_t& number) {
  return get_other(std::string("number ") + std::string(name), number);
}

int Store::put_number(std::string_view name, std::uint64_t number) {
  return put_value(others_, std::string("number ") + std::string(name), bytes_of(number));
}

int Store::put_move(const Move& move) {
  return put_value(others_, move_key(move.parent, move.name), bytes_of(move.id));
}

int Store::has_move(const Move& move, bool& has) {
  std::string_view value;
  const int error = get_value(others_, move_key(move.parent, move.name), value);
  has = error == 0 && value == bytes_of(move.id);
  return error == ENOENT ? 0 : error;
}

int Store::remove_move(const Move& move) {
  return remove_other(move_key(move.parent, move.name));
}

int Store::list_moves(std::vector<Move>& moves) {
  MDB_txn* transaction = nullptr;
  if (const int error = reading(transaction)) return error;
  MDB_cursor* cursor = nullptr;
  int result = mdb_cursor_open(transaction, others_, &cursor);
  if (result != 0) return errno_of(result);
  MDB_val key = value_of(kMoveKey);
  MDB_val value{};
  result = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  for (; result == 0 && text_of(key).starts_with(kMoveKey);
       result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    std::string_view text = text_of(key).substr(kMoveKey.size());
    std::uint64_t parent = 0;
    Move move;
    if (text.size() <= sizeof parent || copy_to(move.id, text_of(value)) != 0) continue;
    std::memcpy(&parent, text.data(), sizeof parent);
    move.parent = __builtin_bswap64(parent);
    move.name = text.substr(sizeof parent);
    moves.push_back(std::move(move));
  }
  mdb_cursor_close(cursor);
  return result == MDB_NOTFOUND ? 0 : errno_of(result);
}

int Store::dump(const std::function<void(std::uint32_t table, std::string rows)>& send) {
  const std::array<MDB_dbi, 6> tables{entries_, inodes_, others_, answers_, values_, locks_};
  for (std::uint32_t table = 0; table < tables.size(); ++table) {
    if (const int error = dump_table(table, tables[table], send)) return error;
  }
  return 0;
}

int Store::dump_table(std::uint32_t table, MDB_dbi handle,
                      const std::function<void(std::uint32_t table, std::string rows)>& send) {
  MDB_txn* transaction = nullptr;
  if (const int error = reading(transaction)) return error;
  MDB_cursor* cursor = nullptr;
  int result = mdb_cursor_open(transaction, handle, &cursor);
  if (result != 0) return errno_of(result);
  MDB_val key{};
  MDB_val value{};
  std::string rows;
  for (result = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); result == 0;
       result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    if (!is_row(table, text_of(key), text_of(value))) continue;
    if (rows.size() + key.mv_size + value.mv_size + 8 > kMaxDataBytes) {
      send(table, std::exchange(rows, {}));
    }
    pario::put_text(rows, text_of(key));
    pario::put_text(rows, text_of(value));
  }
  mdb_cursor_close(cursor);
  if (!rows.empty()) send(table, std::move(rows));
  return result == MDB_NOTFOUND ? 0 : errno_of(result);
}

int Store::load(std::uint32_t table, std::string_view rows) {
  const std::array<MDB_dbi, 6> tables{entries_, inodes_, others_, answers_, values_, locks_};
  if (table >= tables.size()) return EINVAL;
  Cursor cursor{rows};
  while (cursor.ok && !cursor.left.empty()) {
    std::string_view key;
    std::string_view value;
    cursor.take_text(key);
    cursor.take_text(value);
    if (!cursor.ok || !is_row(table, key, value)) return EINVAL;
    if (const int error = put_value(tables[table], key, value)) return error;
  }
  return cursor.ok ? 0 : EINVAL;
}

int Store::clear() {
  MDB_txn* transaction = nullptr;
  int error = writing(transaction);
  for (const MDB_dbi table : {entries_, inodes_, others_, answers_, values_, locks_}) {
    if (error == 0) error = errno_of(mdb_drop(transaction, table, 0));
  }
  if (error == 0) error = put_value(others_, kIdentityKey, identity_);
  next_ = next_end_ = 2;
  return error;
}

int Store::reload() {
  std::string_view stored;
  int error = get_value(others_, kNextKey, stored);
  if (error == ENOENT) return 0;
  if (error == 0) error = copy_to(next_, stored);
  next_end_ = next_;
  return error;
}

std::uint64_t Store::count() {
  MDB_txn* transaction = nullptr;
  MDB_stat status{};
  if (reading(transaction) != 0 || mdb_stat(transaction, inodes_, &status) != 0) return 0;
  return status.ms_entries;
}

}  // namespace score::pario
