// Links, extended attributes, times, and the space of files.
//
// The names of a file are counted at its home. A link counts first and then creates the entry, and
// the removal of a name removes the entry first: if a client dies in between, the count is too high
// and the file stays, so no file is lost while it has a name.
#include "pario/client/volume.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>

namespace score::pario {
namespace {

// Returns a name that no other client uses now.
std::string guard_name() {
  thread_local std::mt19937_64 random(std::random_device{}());
  std::array<char, 48> name{};
  std::snprintf(name.data(), name.size(), ".pario-exchange-%016llx",
                static_cast<unsigned long long>(random()));
  return name.data();
}

std::vector<iovec> memory_of(std::string_view bytes) {
  if (bytes.empty()) return {};
  return {{const_cast<char*>(bytes.data()), bytes.size()}};
}

}  // namespace

int Volume::drop_name(FileId id) {
  if (keeper_ == nullptr || !keeper_->is_open(id)) return remove_file(id);
  Call one;
  if (const int error = call_home(Op::ChangeLinks, id, one)) return error == ESTALE ? 0 : error;
  Attributes attributes;
  if (!parse_body(one.body, attributes)) return EPROTO;
  if (attributes.links > 0 || keeper_->keep(id)) return 0;
  return remove_unnamed(id);
}

int Volume::insert(const Name& name, const Entry& entry, std::uint16_t flags) {
  Call one;
  one.request.number = entry.id;
  one.request.mode = entry.mode;
  one.request.flags = flags;
  return named(Op::Insert, name, one);
}

// Both entries exist at any time. If they are on different servers, a third name keeps the file
// whose entry is replaced first, in case this client ends in the meantime.
int Volume::exchange(const Name& one, const Name& other) {
  if (server_of(one) == server_of(other)) {
    Call call;
    call.request.number = other.parent;
    call.request.name2 = other.name;
    call.request.flags = kExchange;
    return named(Op::Rename, one, call);
  }
  Entry first;
  Entry second;
  if (const int error = find(one.parent, one.name, first)) return error;
  if (const int error = find(other.parent, other.name, second)) return error;
  if (first.id == second.id) return 0;
  const std::string guard = guard_name();
  const Name third{other.parent, guard};
  int error = insert(third, second, kExclusive);
  if (error == 0) error = insert(other, first, kExchange);
  if (error == 0) error = insert(one, second, kExchange);
  Call remove;
  remove.request.number = second.id;
  if (error != 0) return error;  // the third name may be the only one of the second file
  error = named(Op::Unlink, third, remove);
  return error == ENOENT ? 0 : error;
}

int Volume::link(FileId id, const Name& name, FileStatus& found) {
  Call count;
  count.request.number = 1;
  if (const int error = call_home(Op::ChangeLinks, id, count)) return error;
  Attributes attributes;
  if (!parse_body(count.body, attributes)) return EPROTO;
  const Entry entry{id, attributes.mode, {}};
  if (const int error = insert(name, entry, kExclusive)) {
    Call undo;
    static_cast<void>(call_home(Op::ChangeLinks, id, undo));
    return error;
  }
  return take_status(count, found);
}

int Volume::make_symbolic_link(const Name& name, std::string_view target, FileStatus& found) {
  if (target.empty()) return ENOENT;
  if (target.size() > kMaxTargetBytes) return ENAMETOOLONG;
  Call one;
  one.request.mode = S_IFLNK | 0777;
  one.request.flags = kExclusive;
  one.request.data_bytes = static_cast<std::uint32_t>(target.size());
  one.memory = memory_of(target);
  const int error = named(Op::Create, name, one);
  return error != 0 ? error : take_status(one, found);
}

int Volume::read_symbolic_link(FileId id, std::string& target) {
  const int error = read_value(id, {}, target);
  return error == ENODATA ? EINVAL : error;
}

int Volume::make_unnamed(FileId parent, std::uint32_t mode, FileStatus& found) {
  Call one;
  one.request = {.op = Op::MakeFile, .flags = layout_in(parent), .id = parent, .mode = mode};
  const std::uint32_t any = entry_server(parent, guard_name(), servers());
  const int error = call(layout_in(parent) != 0 ? own_server(any) : any, one);
  return error != 0 ? error : take_status(one, found);
}

int Volume::set_group(FileId id, std::uint32_t group) {
  Call one;
  one.request.mode = group;
  return call_home(Op::SetGroup, id, one);
}

int Volume::set_times(FileId id, const Times& times) {
  FileStatus found;
  if (const int error = status(id, found)) return error;
  Call one;
  one.request.mode = times.what;
  one.request.number = static_cast<std::uint64_t>(times.modified_ns);
  one.request.other = static_cast<std::uint64_t>(times.accessed_ns);
  int error = 0;
  // The home is last: the times that it collects later are the new ones.
  if ((times.what & kSetModified) != 0 && (found.is_wide || S_ISDIR(found.mode))) {
    std::vector<Call> calls;
    const Request request{
        .op = Op::SetTime, .id = id, .mode = kSetModified, .number = one.request.number};
    error = call_all(request, calls, home_of(id));
  }
  const int failed = call_home(Op::SetTime, id, one);
  return failed != 0 ? failed : error;
}

int Volume::read_value(FileId id, std::string_view name, std::string& value) {
  value.assign(kMaxValueBytes, '\0');
  Call one;
  one.request.name = name;
  one.memory = memory_of(value);
  const int error = call_home(Op::GetValue, id, one);
  value.resize(error == 0 ? one.reply.data_bytes : 0);
  return error;
}

int Volume::change_value(FileId id, std::string_view name, ValueChange change,
                         std::string_view value) {
  if (value.size() > kMaxValueBytes) return E2BIG;
  if (!is_valid_name(name)) return name.size() > kMaxNameBytes ? ERANGE : EOPNOTSUPP;
  Call one;
  one.request.mode = static_cast<std::uint32_t>(change);
  one.request.name = name;
  one.request.data_bytes = static_cast<std::uint32_t>(value.size());
  one.memory = memory_of(value);
  return call_home(Op::SetValue, id, one);
}

int Volume::list_values(FileId id, std::string& names) {
  names.assign(kMaxValueListBytes, '\0');
  Call one;
  one.memory = memory_of(names);
  const int error = call_home(Op::ListValues, id, one);
  names.resize(error == 0 ? one.reply.data_bytes : 0);
  return error;
}

// Each server's part of the extent is one range of its data file. Only the server with the last
// byte makes the file longer, once all servers have the space.
int Volume::allocate(OpenFile& file, int mode, const Extent& extent) {
  if (!is_valid(extent)) return EFBIG;
  const std::uint64_t end = extent.offset + extent.length;
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const bool takes_space = (mode & FALLOC_FL_PUNCH_HOLE) == 0;
  if (takes_space && end > description_.stripe) {
    const Piece elsewhere{home_of(file.id) + 1, 0, 1, 0};
    if (const int error = make_wide(file, std::span(&elsewhere, 1))) return error;
  }
  const Striping striping = this->striping(file.id);
  const bool is_everywhere = file.is_wide && spread(file.id) > 1;
  const auto range_of = [&](std::uint32_t server, std::uint64_t from) -> Extent {
    if (spread(file.id) == 1) return {from, end - from};
    const std::uint64_t begin = local_size(striping, server, from);
    return {begin, local_size(striping, server, end) - begin};
  };
  const auto ask = [&](std::uint32_t server, int how, const Extent& range) {
    Call one;
    one.request = {.op = Op::Allocate,
                   .id = file.id,
                   .mode = static_cast<std::uint32_t>(how),
                   .number = range.offset,
                   .other = range.length};
    return range.length == 0 ? 0 : call(server, one);
  };
  for (std::uint32_t turn = 0; turn < (is_everywhere ? servers() : 1); ++turn) {
    const std::uint32_t server = (home_of(file.id) + turn) % servers();
    const Extent range = range_of(server, extent.offset);
    if (const int error = ask(server, mode | FALLOC_FL_KEEP_SIZE, range)) return error;
  }
  if (keeps_size) return 0;
  const std::uint64_t chunk = (end - 1) / description_.stripe;
  const auto last =
      static_cast<std::uint32_t>((home_of(file.id) + chunk % spread(file.id)) % servers());
  return ask(last, 0, range_of(last, end - 1));
}

// The places that the servers find in their data files, as places of the file: the first is the
// result. A server without data has only a hole.
int Volume::seek(OpenFile& file, bool is_hole, std::uint64_t offset, std::uint64_t& found) {
  FileStatus known;
  if (const int error = status(file.id, known, true)) return error;
  if (offset >= known.size) return ENXIO;
  const Striping striping = this->striping(file.id);
  const bool is_one = spread(file.id) == 1;
  const bool is_everywhere = known.is_wide && !is_one;
  found = known.size;
  for (std::uint32_t turn = 0; turn < (is_everywhere ? servers() : 1); ++turn) {
    const std::uint32_t server = (home_of(file.id) + turn) % servers();
    Call one;
    one.request = {.op = Op::Seek,
                   .id = file.id,
                   .mode = is_hole ? 1U : 0U,
                   .number = is_one ? offset : local_size(striping, server, offset)};
    if (const int error = call(server, one)) return error;
    const std::uint64_t place = one.reply.number;
    if (place >= kMaxOffset) continue;  // no data
    found = std::min(found, is_one ? place : file_end(striping, server, place + 1) - 1);
  }
  return !is_hole && found >= known.size ? ENXIO : 0;
}

}  // namespace score::pario
