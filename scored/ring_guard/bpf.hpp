// The calls of bpf(2) that are needed here. A descriptor, 0, or a negative errno. Header only, so
// that the launcher links nothing.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace score::ring_guard {

inline int bpf(int command, bpf_attr& attributes) {
  const long done = syscall(SYS_bpf, command, &attributes, sizeof attributes);
  return done < 0 ? -errno : static_cast<int>(done);
}

inline bpf_attr bpf_nothing() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

// What is pinned at `path`.
inline int bpf_open(const char* path) {
  bpf_attr attributes = bpf_nothing();
  attributes.pathname = reinterpret_cast<std::uint64_t>(path);
  return bpf(BPF_OBJ_GET, attributes);
}

inline int bpf_pin(const char* path, int fd) {
  bpf_attr attributes = bpf_nothing();
  attributes.pathname = reinterpret_cast<std::uint64_t>(path);
  attributes.bpf_fd = static_cast<std::uint32_t>(fd);
  return bpf(BPF_OBJ_PIN, attributes);
}

// Sets the value that `table`, of the kind of BPF_MAP_TYPE_SK_STORAGE, has for `socket`.
inline int bpf_set_of_socket(int table, int socket, const void* value) {
  bpf_attr attributes = bpf_nothing();
  attributes.map_fd = static_cast<std::uint32_t>(table);
  attributes.key = reinterpret_cast<std::uint64_t>(&socket);
  attributes.value = reinterpret_cast<std::uint64_t>(value);
  attributes.flags = BPF_NOEXIST;
  return bpf(BPF_MAP_UPDATE_ELEM, attributes);
}

}  // namespace score::ring_guard
