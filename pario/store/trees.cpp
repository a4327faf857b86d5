#include "pario/store/trees.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace score::pario {
namespace {

constexpr std::uint32_t kMostLinks = 1'000'000;

}  // namespace

int Trees::run(const Request& request, std::string_view data, std::int64_t now_ns, Result& result) {
  switch (request.op) {
    case Op::ChangeLinks:
    case Op::SetGroup:
      return change_inode(request, now_ns);
    case Op::GetValue:
      return store_.find_value(request.id, request.name, result.data);
    case Op::ListValues:
      return store_.list_values(request.id, kMaxValueListBytes, result.data);
    case Op::SetValue: {
      const int error = set_value(request, data);
      return error != 0 ? error : change_inode(request, now_ns);
    }
    case Op::Allocate:
      return allocate(request);
    case Op::Seek:
      return request.mode > 1
                 ? EINVAL
                 : data_.seek(request.id, request.mode == 1, request.number, result.number);
    default:
      return EINVAL;
  }
}

int Trees::change_inode(const Request& request, std::int64_t now_ns) {
  Inode inode;
  if (const int error = store_.get(request.id, inode)) return error;
  if (request.op == Op::SetGroup) inode.group = request.mode;
  if (request.op == Op::ChangeLinks) {
    if (S_ISDIR(inode.mode)) return EPERM;
    if (request.number > 1) return EINVAL;
    if (request.number == 1 && inode.links >= kMostLinks) return EMLINK;
    if (request.number == 1) ++inode.links;
    if (request.number == 0 && inode.links > 0) --inode.links;
  }
  inode.changed_ns = now_ns;
  return store_.put(request.id, inode);
}

int Trees::set_value(const Request& request, std::string_view data) {
  const auto change = static_cast<ValueChange>(request.mode);
  if (change > ValueChange::Remove) return EINVAL;
  if (change == ValueChange::Remove) return store_.drop_value(request.id, request.name);
  Inode inode;
  if (const int error = store_.get(request.id, inode)) return error;
  std::string names;
  std::string old;
  const int found = store_.find_value(request.id, request.name, old);
  if (found != 0 && found != ENODATA) return found;
  if (found == 0 && change == ValueChange::Create) return EEXIST;
  if (found != 0 && change == ValueChange::Replace) return ENODATA;
  const std::size_t room = kMaxValueListBytes - request.name.size() - 1;
  if (found != 0 && store_.list_values(request.id, room, names) != 0) return ENOSPC;
  return store_.store_value(request.id, request.name, data);
}

int Trees::allocate(const Request& request) {
  const auto mode = static_cast<int>(request.mode);
  const bool is_known = mode == 0 || mode == FALLOC_FL_KEEP_SIZE ||
                        mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) ||
                        mode == (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
  const Extent extent{request.number, request.other};
  if (!is_known || !is_valid(extent)) return EINVAL;
  return data_.allocate(request.id, mode, extent);
}

}  // namespace score::pario
