#include "scored/job/plan/elf_needs.hpp"

#include "base/errc.hpp"
#include "base/os/fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <span>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::size_t kMaxHeaders = 128;
constexpr std::size_t kMaxDynamic = 4096;
constexpr std::uint64_t kMaxName = 4096;
constexpr std::size_t kMaxStrings = 256UL * 1024;
constexpr std::uint64_t kMaxLibraryStrings = 4UL * 1024 * 1024;

// Reads at most `most` bytes from `offset`. Returns fewer at the end of the file, and none if it
// cannot be read.
std::string read_at(int file, std::uint64_t offset, std::uint64_t most) {
  std::string bytes(most, '\0');
  const ssize_t got = pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

template <class Entry>
std::vector<Entry> read_entries(int file, std::uint64_t offset, std::uint64_t count) {
  const auto bytes = read_at(file, offset, count * sizeof(Entry));
  std::vector<Entry> entries(bytes.size() / sizeof(Entry));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Entry));
  return entries;
}

bool is_our_kind(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= kMaxHeaders;
}

// Returns the file offset of the byte that the program will see at `address`.
std::optional<std::uint64_t> file_offset(std::span<const Elf64_Phdr> segments,
                                         std::uint64_t address) {
  for (const auto& segment : segments) {
    const bool holds = segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
                       address - segment.p_vaddr < segment.p_filesz;
    if (holds) return segment.p_offset + (address - segment.p_vaddr);
  }
  return std::nullopt;
}

// Holds the part of a file that the dynamic linker reads; empty for files of a different kind.
struct Dynamic {
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Dyn> entries;
};

Dynamic read_dynamic(int file) {
  Dynamic all;
  const auto headers = read_entries<Elf64_Ehdr>(file, 0, 1);
  if (headers.empty() || !is_our_kind(headers[0])) return all;
  all.segments = read_entries<Elf64_Phdr>(file, headers[0].e_phoff, headers[0].e_phnum);
  const auto at = std::ranges::find(all.segments, Elf64_Word{PT_DYNAMIC}, &Elf64_Phdr::p_type);
  if (at == all.segments.end()) return all;
  const auto count = std::min<std::uint64_t>(at->p_filesz / sizeof(Elf64_Dyn), kMaxDynamic);
  all.entries = read_entries<Elf64_Dyn>(file, at->p_offset, count);
  return all;
}

// Returns the first `most` bytes of the string table.
std::string strings_of(int file, const Dynamic& dynamic, std::uint64_t most) {
  const auto strings = std::ranges::find(dynamic.entries, DT_STRTAB, &Elf64_Dyn::d_tag);
  if (strings == dynamic.entries.end()) return "";
  const auto offset = file_offset(dynamic.segments, strings->d_un.d_ptr);
  return offset ? read_at(file, *offset, most) : "";
}

std::vector<std::string> names_of(int file, const Dynamic& dynamic) {
  const auto table = strings_of(file, dynamic, kMaxStrings);
  std::vector<std::string> names;
  for (const auto& entry : dynamic.entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag != DT_NEEDED || entry.d_un.d_val >= table.size()) continue;
    const std::string_view rest = std::string_view(table).substr(entry.d_un.d_val);
    names.emplace_back(rest.substr(0, rest.find('\0')));
  }
  return names;
}

}  // namespace

base::Result<std::vector<std::string>> needed_libraries(const std::string& path) {
  const auto file = base::open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!file) return file.error();
  return names_of(file->get(), read_dynamic(file->get()));
}

bool has_dynamic_name(const std::string& path, std::string_view name) {
  const auto file = base::open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!file) return false;
  const auto dynamic = read_dynamic(file->get());
  const auto size = std::ranges::find(dynamic.entries, DT_STRSZ, &Elf64_Dyn::d_tag);
  if (size == dynamic.entries.end()) return false;
  const std::uint64_t bytes = std::min<std::uint64_t>(size->d_un.d_val, kMaxLibraryStrings);
  const std::string with_end = std::string(name).append(1, '\0');
  return strings_of(file->get(), dynamic, bytes).find(with_end) != std::string::npos;
}

base::Result<std::string> dynamic_linker(const std::string& path) {
  const auto file = base::open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!file) return file.error();
  const auto headers = read_entries<Elf64_Ehdr>(file->get(), 0, 1);
  if (headers.empty() || !is_our_kind(headers[0])) return std::string();
  const auto segments =
      read_entries<Elf64_Phdr>(file->get(), headers[0].e_phoff, headers[0].e_phnum);
  const auto name = std::ranges::find(segments, Elf64_Word{PT_INTERP}, &Elf64_Phdr::p_type);
  if (name == segments.end()) return std::string();
  const auto text = read_at(file->get(), name->p_offset, std::min(name->p_filesz, kMaxName));
  return text.substr(0, text.find('\0'));
}

bool starts_other_programs(const std::string& path) {
  constexpr std::array<std::string_view, 32> kNames{
      "sh",        "bash",        "dash",    "ksh",      "zsh",     "env",       "perl",
      "ruby",      "julia",       "Rscript", "numactl",  "taskset", "chrt",      "nice",
      "ionice",    "nohup",       "setsid",  "stdbuf",   "time",    "timeout",   "prlimit",
      "strace",    "ltrace",      "gdb",     "valgrind", "perf",    "catchsegv", "hwloc-bind",
      "apptainer", "singularity", "xargs",   "unshare"};
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (name.starts_with("python") || std::ranges::find(kNames, name) != kNames.end()) return true;
  const auto file = base::open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return file && read_at(file->get(), 0, SELFMAG) != ELFMAG;
}

MpiLibrary mpi_library_of(const std::vector<std::string>& needed) {
  for (const std::string_view name : needed) {
    // MPICH and its derivatives have the ABI number 12; Open MPI 4 and 5 have 40.
    if (name.starts_with("libmpich.so") || name.starts_with("libmpi.so.12")) {
      return MpiLibrary::Mpich;
    }
    const bool is_open_mpi = name.starts_with("libmpi.so.") || name.starts_with("libmpi_") ||
                             name.starts_with("liboshmem.so") || name.starts_with("libpmix.so");
    if (is_open_mpi) return MpiLibrary::OpenMpi;
  }
  return MpiLibrary::Unknown;
}

}  // namespace score::shepherd
