#include "scored/privileged/ring_guard/install.hpp"

#include "pmlib/wire/ebpf.hpp"
#include "scored/privileged/ring_guard/bounds.hpp"
#include "scored/privileged/ring_guard/programs.hpp"

#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <linux/btf.h>
#include <linux/magic.h>
#include <string>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

namespace score::ring_guard {

namespace {

using pm::bpf;
using pm::bpf_nothing;

// Describes the table's keys, int, and values, an array of int, as the kernel requires.
int load_table_types() {
  struct {
    btf_header header;
    btf_type number;
    std::uint32_t encoding;
    btf_type value;
    btf_array shape;
    char names[5];
  } types{};

  types.header.magic = BTF_MAGIC;
  types.header.version = BTF_VERSION;
  types.header.hdr_len = sizeof types.header;
  types.header.type_len = offsetof(decltype(types), names) - sizeof(btf_header);
  types.header.str_off = types.header.type_len;
  types.header.str_len = sizeof types.names;
  types.number.name_off = 1;
  types.number.info = BTF_KIND_INT << 24;
  types.number.size = 4;
  types.encoding = BTF_INT_SIGNED << 24 | 32;
  types.value.info = BTF_KIND_ARRAY << 24;
  types.shape = {.type = 1, .index_type = 1, .nelems = sizeof(Bounds) / 4};
  std::memcpy(types.names, "\0int", 5);
  bpf_attr attributes = bpf_nothing();
  attributes.btf = reinterpret_cast<std::uint64_t>(&types);
  attributes.btf_size =
      static_cast<std::uint32_t>(sizeof(btf_header)) + types.header.type_len + types.header.str_len;
  return bpf(BPF_BTF_LOAD, attributes);
}

int make_table() {
  const int types = load_table_types();
  if (types < 0) return types;
  bpf_attr attributes = bpf_nothing();
  attributes.map_type = BPF_MAP_TYPE_SK_STORAGE;
  attributes.key_size = sizeof(int);
  attributes.value_size = sizeof(Bounds);
  attributes.map_flags = BPF_F_NO_PREALLOC;
  attributes.btf_fd = static_cast<std::uint32_t>(types);
  attributes.btf_key_type_id = 1;
  attributes.btf_value_type_id = 2;
  const int table = bpf(BPF_MAP_CREATE, attributes);
  close(types);
  return table;
}

int load_on_egress(int table) {
  bpf_attr attributes = bpf_nothing();
  attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  return pm::bpf_load(drop_foreign(table), attributes);
}

// Opens the object that is pinned under `name`, or makes it and pins it.
template <class Make>
int keep(const char* name, Make make) {
  const std::string path = std::string(kDirectory) + "/" + name;
  if (const int there = pm::bpf_open(path.c_str()); there != -ENOENT) return there;
  const int made = make();
  if (made < 0) return made;
  if (const int failed = pm::bpf_pin(path.c_str(), made); failed < 0) {
    close(made);
    return failed;
  }
  return made;
}

// Opens the root of the machine's cgroups of version 2, where programs apply to every socket.
int open_root_cgroup() {
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    struct statfs found {};

    if (statfs(path, &found) == 0 && found.f_type == CGROUP2_SUPER_MAGIC) {
      const int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      return root < 0 ? -errno : root;
    }
  }
  return -ENOTSUP;
}

// Returns the link's descriptor.
int attach_to_cgroups() {
  bpf_attr attributes = bpf_nothing();
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_SOCKOPT;
  attributes.expected_attach_type = BPF_CGROUP_SETSOCKOPT;
  const int program = pm::bpf_load(refuse_options(), attributes);
  if (program < 0) return program;
  const int root = open_root_cgroup();
  if (root < 0) return root;
  attributes = bpf_nothing();
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program);
  attributes.link_create.target_fd = static_cast<std::uint32_t>(root);
  attributes.link_create.attach_type = BPF_CGROUP_SETSOCKOPT;
  const int link = bpf(BPF_LINK_CREATE, attributes);
  close(program);
  close(root);
  return link;
}

// Mounts the file system as systemd and iproute2 do.
int mount_file_system() {
  struct statfs found {};

  if (statfs(kFileSystem, &found) == 0 && found.f_type == BPF_FS_MAGIC) return 0;
  const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return mount("bpf", kFileSystem, "bpf", flags, "mode=700") == 0 ? 0 : -errno;
}

}  // namespace

int install(int& egress, const char*& step) {
  step = "mount /sys/fs/bpf";
  if (const int failed = mount_file_system(); failed < 0) return failed;
  step = kDirectory;
  if (mkdir(kDirectory, 0700) != 0 && errno != EEXIST) return -errno;
  const int directory = open(kDirectory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0 || flock(directory, LOCK_EX) != 0) return -errno;
  // The caller's umask (0177 in scored-rings) would exclude owners that cannot override modes.
  if (fchmod(directory, 0700) != 0) return -errno;
  step = "make the table of bounds";
  const int table = keep("bounds", make_table);
  if (table < 0) return table;
  step = "load the program for interfaces";
  egress = keep("egress", [&] { return load_on_egress(table); });
  if (egress < 0) return egress;
  step = "attach the program for socket options";
  const int options = keep("options", attach_to_cgroups);
  for (const int fd : {table, options, directory}) {
    if (fd >= 0) close(fd);
  }
  return options < 0 ? options : 0;
}

}  // namespace score::ring_guard
