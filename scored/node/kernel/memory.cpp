#include "scored/node/kernel/memory.hpp"

#include <cstdint>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace score::node {

namespace {

#ifndef MADV_DONTNEED_LOCKED
constexpr int MADV_DONTNEED_LOCKED = 24;  // Linux 5.18
#endif

// Code and constants are never written, so dropping their pages loses nothing.
int release_one(dl_phdr_info* info, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
    const std::uintptr_t start = (info->dlpi_addr + part.p_vaddr) & ~(page - 1);
    const std::uintptr_t end = info->dlpi_addr + part.p_vaddr + part.p_memsz;
    madvise(reinterpret_cast<void*>(start), end - start, MADV_DONTNEED_LOCKED);
  }
  return 0;
}

}  // namespace

bool lock_memory() {
  return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}

void release_constant_pages() {
  dl_iterate_phdr(&release_one, nullptr);
}

}  // namespace score::node
