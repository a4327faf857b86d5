// These functions wrap the calls of bpf(2) that are needed here. They return a descriptor, 0, or a
// negative errno. The file is header-only, so that the launcher links no library.
#pragma once

#include "pmlib/wire/ebpf_program.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace score::pm {

inline int bpf(int command, bpf_attr& attributes) {
  const long done = syscall(SYS_bpf, command, &attributes, sizeof attributes);
  return done < 0 ? -errno : static_cast<int>(done);
}

inline bpf_attr bpf_nothing() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

// `attributes` holds the kind of the program and where it will be attached.
inline int bpf_load(const EbpfProgram& program, bpf_attr attributes) {
  constexpr const char* kLicense = "Dual MIT/GPL";  // the kernel requires one
  attributes.insns = reinterpret_cast<std::uint64_t>(program.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
  attributes.license = reinterpret_cast<std::uint64_t>(kLicense);
  return bpf(BPF_PROG_LOAD, attributes);
}

// Opens the object that is pinned at `path`.
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

// Sets the value of `key` in `table`.
inline int bpf_set(int table, const void* key, const void* value, std::uint64_t flags = BPF_ANY) {
  bpf_attr attributes = bpf_nothing();
  attributes.map_fd = static_cast<std::uint32_t>(table);
  attributes.key = reinterpret_cast<std::uint64_t>(key);
  attributes.value = reinterpret_cast<std::uint64_t>(value);
  attributes.flags = flags;
  return bpf(BPF_MAP_UPDATE_ELEM, attributes);
}

}  // namespace score::pm
