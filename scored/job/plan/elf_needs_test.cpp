#include "scored/job/plan/elf_needs.hpp"

#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <random>
#include <unistd.h>

namespace score::shepherd {
namespace {

class File {
 public:
  explicit File(const std::string& bytes) {
    base::UniqueFd file(mkstemp(path_.data()));
    std::ignore = base::write_all(file.get(), bytes);
  }

  ~File() { unlink(path_.c_str()); }

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/elf_needs.XXXXXX";
};

std::string own_program() {
  return base::read_file("/proc/self/exe", 1UL << 30).value_or("");
}

TEST(ElfNeeds, NamesTheLibrariesOfAProgram) {
  const auto needed = needed_libraries("/proc/self/exe");
  ASSERT_TRUE(needed);
  EXPECT_NE(std::ranges::find(*needed, "libc.so.6"), needed->end());
}

TEST(ElfNeeds, FindsSymbolNamesBySuffix) {
  EXPECT_TRUE(has_dynamic_name("/proc/self/exe", "mkstemp"));
  EXPECT_FALSE(has_dynamic_name("/proc/self/exe", "mkstem"));
  EXPECT_FALSE(has_dynamic_name(File("mkstemp").path(), "mkstemp"));
  EXPECT_FALSE(has_dynamic_name("/nonexistent", "mkstemp"));
}

TEST(ElfNeeds, NamesTheDynamicLinker) {
  const auto linker = dynamic_linker("/proc/self/exe");
  ASSERT_TRUE(linker);
  EXPECT_NE(linker->find("/ld-linux"), linker->npos) << *linker;
  EXPECT_EQ(*dynamic_linker(File("#!/bin/sh\n").path()), "");
}

TEST(ElfNeeds, FindsNothingInScriptsAndEmptyFiles) {
  EXPECT_TRUE(needed_libraries(File("#!/bin/sh\n").path())->empty());
  EXPECT_TRUE(needed_libraries(File("").path())->empty());
  EXPECT_FALSE(needed_libraries("/nonexistent"));
}

TEST(ElfNeeds, SurvivesTruncatedAndBrokenFiles) {
  std::mt19937 random(1);
  std::string program = own_program().substr(0, 64UL * 1024);
  ASSERT_GT(program.size(), 1024U);
  for (int turn = 0; turn < 200; ++turn) {
    std::string bytes = program.substr(0, random() % program.size());
    for (int change = 0; change < 20 && !bytes.empty(); ++change) {
      bytes[random() % std::min<std::size_t>(bytes.size(), 1024)] = static_cast<char>(random());
    }
    const File file(bytes);
    EXPECT_TRUE(needed_libraries(file.path()));
    EXPECT_TRUE(dynamic_linker(file.path()));
    EXPECT_FALSE(has_dynamic_name(file.path(), "no such name"));
  }
}

TEST(ElfNeeds, DistinguishesMpiLibraries) {
  EXPECT_EQ(mpi_library_of({"libm.so.6", "libmpi.so.40"}), MpiLibrary::OpenMpi);
  EXPECT_EQ(mpi_library_of({"libmpi_cxx.so.40"}), MpiLibrary::OpenMpi);
  EXPECT_EQ(mpi_library_of({"libpmix.so.2"}), MpiLibrary::OpenMpi);
  EXPECT_EQ(mpi_library_of({"libmpich.so.12"}), MpiLibrary::Mpich);
  EXPECT_EQ(mpi_library_of({"libmpi.so.12"}), MpiLibrary::Mpich);
  EXPECT_EQ(mpi_library_of({"libc.so.6"}), MpiLibrary::Unknown);
}

}  // namespace
}  // namespace score::shepherd
