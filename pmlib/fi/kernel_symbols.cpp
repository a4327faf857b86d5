// libfabric 1.17 (Debian 12) initialises its provider `verbs` even where FI_PROVIDER excludes it,
// and `verbs` searches /proc/kallsyms twice for the kernel's support of device memory. The kernel
// writes the table anew each time, which takes longer than the rest of a rank's start. No setting
// prevents this. But libfabric loads this library before it initialises its own providers, and
// `verbs` takes these features for missing if it cannot open the table. So this file redirects
// libfabric's import of fopen(), as libfabric's own memory monitor redirects functions of the C
// library.
#include "pmlib/fi/kernel_symbols.hpp"

#include <rdma/fabric.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <span>
#include <string_view>
#include <sys/mman.h>
#include <tuple>
#include <unistd.h>

namespace score::pm::fi {

namespace {

using Relocation = ElfW(Rela);
using Symbol = ElfW(Sym);
using Entry = ElfW(Dyn);

constexpr std::uint32_t kReadsWhenUsed = FI_VERSION(1, 19);
constexpr const char* kTable = "/proc/kallsyms";
constexpr std::string_view kImport = "fopen";

std::FILE* open_other_files(const char* path, const char* mode) {
  if (std::strcmp(path, kTable) != 0) return std::fopen(path, mode);
  errno = ENOENT;
  return nullptr;
}

// Lists the functions that a loaded object imports from other objects.
struct Imports {
  std::uintptr_t base = 0;  // where the object is loaded
  std::span<const Relocation> slots;
  const Symbol* symbols = nullptr;
  const char* names = nullptr;
};

// Returns no slots on machines that keep them in the older format.
Imports imports_of(const link_map& object) {
  Imports found{.base = object.l_addr, .slots = {}};
  const Relocation* first = nullptr;
  std::size_t bytes = 0;
  bool is_known = false;
  for (const Entry* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t value = entry->d_un.d_val;
    // glibc has turned addresses that count from the base into real ones; other linkers do not.
    const std::uintptr_t address = value < found.base ? found.base + value : value;
    if (entry->d_tag == DT_JMPREL) first = reinterpret_cast<const Relocation*>(address);
    if (entry->d_tag == DT_SYMTAB) found.symbols = reinterpret_cast<const Symbol*>(address);
    if (entry->d_tag == DT_STRTAB) found.names = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_PLTRELSZ) bytes = value;
    if (entry->d_tag == DT_PLTREL) is_known = value == DT_RELA;
  }
  const bool is_whole = first != nullptr && found.symbols != nullptr && found.names != nullptr;
  if (is_known && is_whole) found.slots = {first, bytes / sizeof *first};
  return found;
}

// Returns the place where the object keeps the address of the named function; null if the object
// does not import it.
void** find_slot(const Imports& imports, std::string_view name) {
  for (const auto& slot : imports.slots) {
    const auto& symbol = imports.symbols[ELF64_R_SYM(slot.r_info)];
    if (imports.names + symbol.st_name != name) continue;
    return reinterpret_cast<void**>(imports.base + slot.r_offset);
  }
  return nullptr;
}

std::uintptr_t page_of(std::uintptr_t address) {
  return address & ~(static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);
}

struct Place {
  std::uintptr_t base = 0;
  std::uintptr_t slot = 0;
  bool is_sealed = false;
};

int look_for_seal(dl_phdr_info* object, std::size_t, void* argument) {
  auto& place = *static_cast<Place*>(argument);
  if (object->dlpi_addr != place.base) return 0;
  for (const auto& segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (segment.p_type != PT_GNU_RELRO) continue;
    const std::uintptr_t begin = place.base + segment.p_vaddr;
    place.is_sealed = page_of(begin) <= place.slot && place.slot < page_of(begin + segment.p_memsz);
  }
  return 1;
}

// Changes one import slot of an object. The dynamic linker has made it read-only if the object was
// linked with that option.
class Slot {
 public:
  Slot() = default;

  Slot(void** at, std::uintptr_t base) : at_(at) {
    Place place{.base = base, .slot = reinterpret_cast<std::uintptr_t>(at)};
    dl_iterate_phdr(look_for_seal, &place);
    is_sealed_ = place.is_sealed;
  }

  [[nodiscard]] bool is_known() const { return at_ != nullptr; }

  // Returns the previous value; null if the slot could not be changed.
  void* exchange(void* value) const {
    const auto address = page_of(reinterpret_cast<std::uintptr_t>(at_));
    auto* const page = reinterpret_cast<void*>(address);
    const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (is_sealed_ && mprotect(page, bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
    void* const before = std::atomic_ref(*at_).exchange(value);
    if (is_sealed_) std::ignore = mprotect(page, bytes, PROT_READ);
    return before;
  }

 private:
  void** at_ = nullptr;
  bool is_sealed_ = false;
};

Slot changed;
void* original = nullptr;

}  // namespace

bool reads_symbols_in_vain(std::uint32_t version, const char* providers) {
  if (FI_VERSION_GE(version, kReadsWhenUsed) || providers == nullptr) return false;
  // "a,b" selects only these; "^a,b" selects all but these. A name may be layered: "verbs;ofi_rxm".
  const bool names_some = *providers != '\0' && *providers != '^';
  return names_some && strcasestr(providers, "verbs") == nullptr;
}

void hide_kernel_symbols(const void* caller) {
  Dl_info where{};
  void* about = nullptr;
  if (original != nullptr || dladdr1(caller, &where, &about, RTLD_DL_LINKMAP) == 0) return;
  const Imports imports = imports_of(*static_cast<const link_map*>(about));
  void** const at = find_slot(imports, kImport);
  if (at == nullptr) return;
  changed = Slot(at, imports.base);
  original = changed.exchange(reinterpret_cast<void*>(&open_other_files));
}

void show_kernel_symbols() {
  if (original == nullptr) return;
  if (changed.exchange(original) != nullptr) {
    original = nullptr;
    return;
  }
  // The slot points into this library from now on, so this library must stay loaded.
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&open_other_files), &own) == 0) return;
  std::ignore = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace score::pm::fi
