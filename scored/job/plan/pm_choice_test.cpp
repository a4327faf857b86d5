#include "scored/job/plan/pm_choice.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::shepherd {
namespace {

// Creates fake libraries, which consist of a name and a few bytes, in a temporary folder.
class Folder {
 public:
  Folder() { path_ = mkdtemp(name_.data()); }

  ~Folder() { std::filesystem::remove_all(path_); }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string add(const std::string& name, const std::string& content = "") const {
    const auto file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
    return file.string();
  }

 private:
  std::string name_ = "/tmp/pm_choice.XXXXXX";
  std::string path_;
};

TEST(PmChoice, RefusesMpiWithoutLibfabric) {
  const Folder folder;
  const auto mpi = folder.add("libmpich.so.12", "only UCX");
  const auto objection = ofi_objection({"/lib/libc.so.6", mpi});
  EXPECT_NE(objection.find(mpi), objection.npos) << objection;
  EXPECT_NE(objection.find("--net=native"), objection.npos) << objection;
  EXPECT_EQ(objection.find('\n'), objection.npos);
}

TEST(PmChoice, AcceptsMpiThatLoadsLibfabric) {
  const Folder folder;
  EXPECT_EQ(ofi_objection({folder.add("libmpi.so.12"), "/usr/lib/libfabric.so.1"}), "");
}

TEST(PmChoice, AcceptsMpiWithBuiltInLibfabric) {
  const Folder folder;
  EXPECT_EQ(ofi_objection({folder.add("libmpi.so.12", "x FI_PROVIDER_PATH y")}), "");
}

TEST(PmChoice, FindsPluginOfOpenMpi) {
  for (const std::string plugins : {"openmpi/", "openmpi/lib/openmpi3/"}) {
    const Folder folder;
    const auto mpi = folder.add("libmpi.so.40");
    EXPECT_EQ(ofi_objection({mpi}), "");  // they may be anywhere
    folder.add(plugins + "mca_pml_cm.so");
    EXPECT_NE(ofi_objection({mpi}).find(mpi), std::string::npos);
    folder.add(plugins + "mca_mtl_ofi.so");
    EXPECT_EQ(ofi_objection({mpi}), "");
  }
}

// Starts a process that has mapped the library, as if it had loaded it.
pid_t start_with(const std::string& library) {
  int ready[2];
  if (pipe(ready) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    const int file = open(library.c_str(), O_RDONLY);
    const bool is_mapped = mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, file, 0) != MAP_FAILED;
    if (write(ready[1], &is_mapped, 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) return -1;
  close(ready[0]);
  close(ready[1]);
  return pid;
}

TEST(PmChoice, FindsLibraryLoadedByChild) {
  const Folder folder;
  const auto mpi = folder.add("libmpich.so.12", "only UCX");
  EXPECT_EQ(ofi_objection_of_task(getpid()), "");
  const pid_t child = start_with(mpi);
  ASSERT_GT(child, 0);
  const auto objection = ofi_objection_of_task(getpid());
  EXPECT_NE(objection.find(mpi + " is built without OFI"), objection.npos) << objection;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(ofi_objection_of_task(getpid()), "");
  EXPECT_EQ(ofi_objection_of_task(child), "");
}

TEST(PmChoice, DoesNotObjectToProgramsWithoutMpi) {
  EXPECT_EQ(ofi_objection({}), "");
  EXPECT_EQ(ofi_objection({"/lib/libc.so.6"}), "");
  EXPECT_NE(ofi_objection({"/nonexistent/libmpich.so.12"}), "");
}

}  // namespace
}  // namespace score::shepherd
