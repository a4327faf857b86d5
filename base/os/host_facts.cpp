// Its parsers are tested by tests/fuzz/base_text.cpp.

#include "base/os/host_facts.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace score::inline base {

namespace {

constexpr std::uint32_t kMaxCpu = 65'536;
constexpr std::size_t kMaxFactBytes = 65'536;

// cpu_set_t ends at 1,024 processors, and the kernel rejects sets that are too small for the host.
// So the set grows until the kernel accepts it.
Result<std::vector<std::uint32_t>> allowed_cores() {
  for (std::size_t room = CPU_SETSIZE; room <= kMaxCpu; room *= 2) {
    cpu_set_t* set = CPU_ALLOC(room);
    const std::size_t bytes = CPU_ALLOC_SIZE(room);
    const bool done = set != nullptr && sched_getaffinity(0, bytes, set) == 0;
    const int error = errno;
    std::vector<std::uint32_t> cores;
    for (std::uint32_t cpu = 0; done && cpu < room; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cores.push_back(cpu);
    }
    CPU_FREE(set);
    if (done) return cores;
    if (error != EINVAL) return fail(errno_code(error), "cannot get the allowed processors");
  }
  return fail(Errc::TooLarge, "number of processors");
}

}  // namespace

Result<Bytes> parse_meminfo(std::string_view text, std::string_view key) {
  for (auto line : split(text, '\n')) {
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(':')) continue;
    line = trim(line.substr(key.size() + 1));
    const bool is_kib = line.ends_with(" kB");
    if (is_kib) line = trim(line.substr(0, line.size() - 3));
    const auto value = parse_number<std::uint64_t>(line);
    if (!value) return value.error().with_context("{} of /proc/meminfo", key);
    return Bytes(*value) * (is_kib ? 1024 : 1);
  }
  return fail(Errc::NotFound, "{} in /proc/meminfo", key);
}

Result<HostFacts> read_host_facts() {
  HostFacts facts;
  utsname names{};
  if (uname(&names) != 0) return fail(errno_code(errno), "cannot get the host's name");
  facts.name = split(names.nodename, '.')[0];
  auto cores = allowed_cores();
  if (!cores) return cores.error();
  facts.cores = *std::move(cores);
  const auto meminfo = read_file("/proc/meminfo", kMaxFactBytes);
  if (!meminfo) return meminfo.error();
  const auto memory = parse_meminfo(*meminfo, "MemTotal");
  if (!memory) return memory.error();
  facts.memory = *memory;
  return facts;
}

std::string monotonic_clock_name() {
  const auto boot_id = read_file("/proc/sys/kernel/random/boot_id", kMaxFactBytes);
  std::error_code no_namespaces;
  const auto offsets = std::filesystem::read_symlink("/proc/self/ns/time", no_namespaces);
  if (!boot_id || trim(*boot_id).empty()) return {};
  return std::string(trim(*boot_id)) + ' ' + offsets.string();
}

}  // namespace score::inline base
