// Names that other clients replace meanwhile, files that are open here, and locks.
#include "pario/client/volume.hpp"
#include "pario/core/homes/nameless.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/stat.h>

namespace score::pario {
namespace {

constexpr int kMostTries = 100;
constexpr int kPauseMs = 10;
constexpr std::size_t kMostIds = kMaxDataBytes / sizeof(FileId);

}  // namespace

// The name may refer to a different file by the time when the home of the first one is asked.
int Volume::lookup(FileId parent, std::string_view name, FileStatus& found, bool will_open) {
  for (int tries = 0;; ++tries) {
    Call one;
    one.request.flags = will_open ? kOpened | kWillOpen : 0;
    int error = named(Op::Lookup, {parent, name}, one);
    if (error != 0) return error == ESTALE ? in_closed_directory(parent) : error;
    Attributes attributes;
    if (!parse_body(one.body, attributes)) return EPROTO;
    Call home;
    home.request.flags = one.request.flags;
    const bool is_elsewhere = attributes.mode == 0;
    if (is_elsewhere) error = call_home(Op::GetAttributes, attributes.id, home);
    if (error == 0) error = take_status(is_elsewhere ? home : one, found, will_open);
    if (error != ESTALE || tries == kMostTries) return error;
  }
}

int Volume::create(FileId parent, std::string_view name, std::uint32_t mode, bool exclusive,
                   FileStatus& found) {
  for (int tries = 0;; ++tries) {
    const int error = create_once({parent, name}, mode, exclusive, found);
    if (error != ESTALE || tries == kMostTries) return error;
    if (const int closed = in_closed_directory(parent); closed != ENOENT) return closed;
    ::poll(nullptr, 0, kPauseMs);
  }
}

int Volume::create_once(const Name& name, std::uint32_t mode, bool exclusive, FileStatus& found) {
  const std::uint16_t layout = layout_in(name.parent);
  const std::uint32_t server = server_of(name);
  const std::uint32_t own = layout != 0 && S_ISREG(mode) ? own_server(server) : server;
  if (own != server) {
    const int error = create_on(own, name, mode, found);
    if (error != EEXIST || exclusive) return error;
    const int there = lookup(name.parent, name.name, found);
    return there == ENOENT ? ESTALE : there;  // it was removed in between: again
  }
  Call one;
  one.request.mode = mode;
  one.request.flags = layout | (exclusive ? kExclusive : 0);
  const int error = named(Op::Create, name, one);
  return error != 0 ? error : take_status(one, found, !exclusive);
}

// No name can be made in a directory that is removed, or that another client tries to remove.
// Returns ENOENT if it is there, or else ESTALE.
int Volume::in_closed_directory(FileId directory) {
  Call one;
  const int error = call_home(Op::GetAttributes, directory, one);
  return error == 0 ? ENOENT : error;
}

void Volume::hold(std::uint32_t server, std::vector<FileId> files) {
  for (std::size_t begin = 0; begin < files.size(); begin += kMostIds) {
    const std::size_t bytes = std::min(kMostIds, files.size() - begin) * sizeof(FileId);
    Call one;
    one.request = {.op = Op::Hold,
                   .id = kRootId,
                   .number = client_,
                   .data_bytes = static_cast<std::uint32_t>(bytes)};
    one.memory = {{files.data() + begin, bytes}};
    static_cast<void>(call(server, one));
  }
}

int Volume::lock(FileId id, std::uint32_t mode, const LockRequest& wanted, FileLock* found) {
  LockRequest request = wanted;
  Call one;
  one.request.mode = mode;
  one.request.number = client_;
  one.request.data_bytes = sizeof request;
  one.memory = {{&request, sizeof request}};
  if (const int error = call_home(Op::Lock, id, one)) return error;
  if (found == nullptr) return 0;
  return parse_body(one.body, *found) ? 0 : EPROTO;
}

}  // namespace score::pario
