#include "scored/privileged/device_guard/attach.hpp"

#include "base/os/fd.hpp"
#include "pmlib/wire/ebpf.hpp"
#include "scored/shared/config/device_config.hpp"

#include <array>
#include <fcntl.h>
#include <string_view>
#include <sys/xattr.h>
#include <vector>

namespace score::device_guard {
namespace {

using pm::bpf;
using pm::bpf_nothing;

constexpr char kName[] = "scored_devices";  // name of our programs; the kernel allows 15 characters
constexpr std::size_t kMostPrograms = 64;   // the kernel's limit for one cgroup

Result<UniqueFd> take(int fd, const char* step) {
  if (fd < 0) return fail(errno_code(-fd), "{}", step);
  return UniqueFd(fd);
}

Result<UniqueFd> load(const pm::EbpfProgram& program) {
  bpf_attr attributes = bpf_nothing();
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  std::memcpy(attributes.prog_name, kName, sizeof kName);
  return take(pm::bpf_load(program, attributes), "cannot load a program for devices");
}

bool is_ours(int program) {
  bpf_prog_info info{};
  bpf_attr attributes = bpf_nothing();
  attributes.info.bpf_fd = static_cast<std::uint32_t>(program);
  attributes.info.info_len = sizeof info;
  attributes.info.info = reinterpret_cast<std::uint64_t>(&info);
  return bpf(BPF_OBJ_GET_INFO_BY_FD, attributes) == 0 && std::string_view(info.name) == kName;
}

// Returns our programs at this cgroup.
Result<std::vector<UniqueFd>> attached(int cgroup) {
  std::array<std::uint32_t, kMostPrograms> ids{};
  bpf_attr attributes = bpf_nothing();
  attributes.query.target_fd = static_cast<std::uint32_t>(cgroup);
  attributes.query.attach_type = BPF_CGROUP_DEVICE;
  attributes.query.prog_ids = reinterpret_cast<std::uint64_t>(ids.data());
  attributes.query.prog_cnt = ids.size();
  const int failed = bpf(BPF_PROG_QUERY, attributes);
  if (failed < 0) return fail(errno_code(-failed), "cannot list the programs of the cgroup");
  std::vector<UniqueFd> ours;
  for (std::size_t i = 0; i < attributes.query.prog_cnt; ++i) {
    bpf_attr one = bpf_nothing();
    one.prog_id = ids[i];
    UniqueFd program(bpf(BPF_PROG_GET_FD_BY_ID, one));
    if (program.get() >= 0 && is_ours(program.get())) ours.push_back(std::move(program));
  }
  return ours;
}

Status change(int command, int cgroup, int program, const char* step) {
  bpf_attr attributes = bpf_nothing();
  attributes.target_fd = static_cast<std::uint32_t>(cgroup);
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(program);
  attributes.attach_type = BPF_CGROUP_DEVICE;
  if (command == BPF_PROG_ATTACH) attributes.attach_flags = BPF_F_ALLOW_MULTI;
  const int failed = bpf(command, attributes);
  if (failed < 0) return fail(errno_code(-failed), "{}", step);
  return {};
}

Status detach(int cgroup, const std::vector<UniqueFd>& programs) {
  for (const UniqueFd& program : programs) {
    auto done =
        change(BPF_PROG_DETACH, cgroup, program.get(), "cannot detach a program for devices");
    if (!done) return done;
  }
  return {};
}

}  // namespace

Status enforce(const std::string& cgroup, const pm::EbpfProgram& program, const std::string& mark) {
  const auto directory = open_file(cgroup, O_RDONLY | O_DIRECTORY, 0);
  if (!directory) return directory.error();
  const auto loaded = load(program);
  if (!loaded) return loaded.error();
  const auto before = attached(directory->get());
  if (!before) return before.error();
  auto done = change(BPF_PROG_ATTACH, directory->get(), loaded->get(),
                     "cannot attach a program for devices");
  if (done) done = detach(directory->get(), *before);
  if (!done) return done;
  if (::fsetxattr(directory->get(), kDeviceMark, mark.data(), mark.size(), 0) == 0) return {};
  return fail(errno_code(errno), "cannot mark {}", cgroup);
}

Status lift(const std::string& cgroup) {
  if (read_device_mark(cgroup).empty()) return {};
  const auto directory = open_file(cgroup, O_RDONLY | O_DIRECTORY, 0);
  if (!directory) return directory.error();
  const auto before = attached(directory->get());
  if (!before) return before.error();
  if (auto done = detach(directory->get(), *before); !done) return done;
  if (::fremovexattr(directory->get(), kDeviceMark) == 0) return {};
  return fail(errno_code(errno), "cannot unmark {}", cgroup);
}

}  // namespace score::device_guard
