#pragma once
// Makes the sockets of PM replaceable in criu's images. criu restores a UDP socket at its old
// address, which may be that of another host, and takes no other in its place; but it takes any
// descriptor in the place of a file (--inherit-fd). So after a save, each socket of PM becomes a
// file with the name of socket_name(). The functions are pure: bytes in, bytes out.
//
// An image is two magic numbers of 32 bits, then entries: the length in 32 bits, and a message of
// Protocol Buffers (criu's images/fdinfo.proto).

#include "base/result.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace score::shepherd {

// Returns what names socket `index` of PM in the images, without the leading slash.
std::string socket_name(std::uint64_t index);

// Returns files.img with each UDP socket of `inodes` ([index]) as a file. Adds criu's ids of these
// sockets to `ids`. Errors: Malformed.
base::Result<std::string> replace_sockets(std::string_view files,
                                          std::span<const std::uint64_t> inodes,
                                          std::set<std::uint64_t>& ids);

// Returns an image of a process's descriptors (fdinfo-*.img) with those of the sockets `ids` as
// descriptors of files. Errors: Malformed.
base::Result<std::string> replace_descriptors(std::string_view descriptors,
                                              const std::set<std::uint64_t>& ids);

}  // namespace score::shepherd
