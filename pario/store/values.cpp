// Keeps the values and locks of files. The keys of values are the number of the file, big-endian,
// and the name, so that the values of a file follow each other.
#include "pario/store/store.hpp"

#include <cerrno>
#include <cstring>

namespace score::pario {
namespace {

std::string value_key(FileId id, std::string_view name) {
  const std::uint64_t big = __builtin_bswap64(id);
  std::string key(reinterpret_cast<const char*>(&big), sizeof big);
  key += name;
  return key;
}

constexpr std::string_view kKeptKey = "kept";

int as_no_data(int error) {
  return error == ENOENT ? ENODATA : error;
}

}  // namespace

int Store::find_value(FileId id, std::string_view name, std::string& value) {
  std::string_view found;
  const int error = get_value(values_, value_key(id, name), found);
  if (error == 0) value = found;
  return as_no_data(error);
}

int Store::store_value(FileId id, std::string_view name, std::string_view value) {
  return put_value(values_, value_key(id, name), value);
}

int Store::drop_value(FileId id, std::string_view name) {
  return as_no_data(remove_value(values_, value_key(id, name)));
}

int Store::list_values(FileId id, std::size_t most, std::string& names) {
  MDB_txn* transaction = nullptr;
  if (const int error = reading(transaction)) return error;
  MDB_cursor* cursor = nullptr;
  if (mdb_cursor_open(transaction, values_, &cursor) != 0) return EIO;
  const std::string begin = value_key(id, {});
  MDB_val key{begin.size(), const_cast<char*>(begin.data())};
  MDB_val value{};
  int error = 0;
  int result = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  for (; result == 0; result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    const std::string_view found(static_cast<const char*>(key.mv_data), key.mv_size);
    if (!found.starts_with(begin)) break;
    if (found.size() == begin.size()) continue;  // the target of a symbolic link
    names.append(found.substr(begin.size())).push_back('\0');
    if (names.size() > most) error = ERANGE;
    if (error != 0) break;
  }
  mdb_cursor_close(cursor);
  if (result != 0 && result != MDB_NOTFOUND) error = EIO;
  return error;
}

int Store::drop_values(FileId id) {
  std::string names;
  if (const int error = list_values(id, SIZE_MAX, names)) return error;
  int error = remove_value(values_, value_key(id, {}));
  if (error == ENOENT) error = 0;
  for (std::string_view left = names; error == 0 && !left.empty();) {
    const std::string_view name = left.substr(0, left.find('\0'));
    error = drop_value(id, name);
    left.remove_prefix(name.size() + 1);
  }
  return error;
}

int Store::set_kept(FileId id, bool is_kept) {
  const std::string key = std::string(kKeptKey) + value_key(id, {});
  if (!is_kept) return remove_other(key);
  return put_value(others_, key, std::string_view("\0\0\0\0\0\0\0\0", 8));
}

int Store::list_kept(std::vector<FileId>& files) {
  return list_ids(others_, kKeptKey, files);
}

int Store::list_locked(std::vector<FileId>& files) {
  return list_ids(locks_, {}, files);
}

// Appends the numbers that follow the prefix in the keys of a table.
int Store::list_ids(MDB_dbi table, std::string_view prefix, std::vector<FileId>& files) {
  MDB_txn* transaction = nullptr;
  if (const int error = reading(transaction)) return error;
  MDB_cursor* cursor = nullptr;
  if (mdb_cursor_open(transaction, table, &cursor) != 0) return EIO;
  MDB_val key{prefix.size(), const_cast<char*>(prefix.data())};
  MDB_val value{};
  int result = mdb_cursor_get(cursor, &key, &value, prefix.empty() ? MDB_FIRST : MDB_SET_RANGE);
  for (; result == 0; result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    std::string_view found(static_cast<const char*>(key.mv_data), key.mv_size);
    if (!found.starts_with(prefix)) break;
    found.remove_prefix(prefix.size());
    std::uint64_t big = 0;
    if (found.size() != sizeof big) continue;
    std::memcpy(&big, found.data(), sizeof big);
    files.push_back(__builtin_bswap64(big));
  }
  mdb_cursor_close(cursor);
  return result == 0 || result == MDB_NOTFOUND ? 0 : EIO;
}

int Store::get_locks(FileId id, std::vector<FileLock>& locks) {
  locks.clear();
  std::string_view found;
  const int error = get_value(locks_, value_key(id, {}), found);
  if (error != 0) return error == ENOENT ? 0 : error;
  locks.resize(found.size() / sizeof(FileLock));
  if (!locks.empty()) std::memcpy(locks.data(), found.data(), locks.size() * sizeof(FileLock));
  return 0;
}

int Store::put_locks(FileId id, const std::vector<FileLock>& locks) {
  if (!locks.empty()) {
    return put_value(
        locks_, value_key(id, {}),
        {reinterpret_cast<const char*>(locks.data()), locks.size() * sizeof(FileLock)});
  }
  const int error = remove_value(locks_, value_key(id, {}));
  return error == ENOENT ? 0 : error;
}

}  // namespace score::pario
