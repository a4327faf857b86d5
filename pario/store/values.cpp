// Keeps the values of files. Their keys are the number of the file, big-endian, and the name, so
// that the values of a file follow each other.
#include "pario/store/store.hpp"

#include <cerrno>

namespace score::pario {
namespace {

std::string value_key(FileId id, std::string_view name) {
  const std::uint64_t big = __builtin_bswap64(id);
  std::string key(reinterpret_cast<const char*>(&big), sizeof big);
  key += name;
  return key;
}

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

}  // namespace score::pario
