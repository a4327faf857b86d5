#include "pario/client/group.hpp"

#include "pmlib/wire/siphash.hpp"

#include <cerrno>

namespace score::pario {

Group::Group(Volume& volume, std::string_view name, std::uint32_t rank, std::uint32_t size)
    : volume_(volume),
      group_(pm::SipHash(pm::SipKey{}).finish(std::as_bytes(std::span(name)))),
      part_{.sequence = 0, .size = size, .rank = rank, .error = 0} {}

ssize_t Group::meet(const OpenFile& file, ssize_t result) {
  part_.error = result < 0 ? static_cast<std::uint32_t>(-result) : 0;
  const int error = volume_.gather(file.id, group_, part_);
  ++part_.sequence;
  return error != 0 ? -error : result;
}

}  // namespace score::pario
