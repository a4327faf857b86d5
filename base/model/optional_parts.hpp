#pragma once
// Optional parts are those that a node may lack and still run jobs. scored-probe looks for each of
// them on every node. `score doctor` and `score info --optional` print the missing ones and the
// remedy.

#include <algorithm>
#include <array>
#include <string_view>

namespace score::inline base {

struct OptionalPart {
  std::string_view name;    // on the wire between scored-probe and the commands, and for users
  std::string_view use;     // feature that does not work without it
  std::string_view remedy;  // an imperative, for administrators
};

inline constexpr std::array kOptionalParts = std::to_array<OptionalPart>({
    {"scored-pmix", "jobs of Open MPI",
     "install the package scored-node, or build with libpmix-dev"},
    {"scored-stacks", "score stacks", "install the package scored-node, or build with libdw-dev"},
    {"scored-pario", "--scratch and volumes",
     "install the package scored-pario, or build with liburing-dev and liblmdb-dev"},
    {"scored-pario-mount", "--scratch and mounted volumes",
     "install the package scored-pario, or build with libfuse3-dev"},
    {"scored-scratch-directory", "--scratch", "install the package scored-node"},
    {"scored-rings", "network devices of Ethernet", "install the package scored-node"},
    {"libpm-fi.so", "MPI over PM (--net=pm)", "install the package libpm-fi1"},
    {"fusermount3", "--scratch and mounted volumes", "install the package fuse3"},
    {"/dev/fuse", "--scratch and mounted volumes",
     "load the kernel module fuse, or give the device to the container"},
    {"/dev/shm", "shared memory of MPI and Python", "mount a tmpfs at /dev/shm"},
    {"io_uring", "volumes with many clients (elsewhere threads are as fast)",
     "set the sysctl kernel.io_uring_disabled to 0, or admit io_uring in the container"},
    {"python3", "jobs of Python", "install the package python3"},
});

constexpr const OptionalPart* find_optional_part(std::string_view name) {
  const auto* found = std::ranges::find(kOptionalParts, name, &OptionalPart::name);
  return found == kOptionalParts.end() ? nullptr : found;
}

}  // namespace score::inline base
