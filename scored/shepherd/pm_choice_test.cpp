#include "scored/shepherd/pm_choice.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace score::shepherd {
namespace {

// A folder of libraries, as far as names and a few bytes make one.
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

TEST(PmChoice, RefusesAnMpiWithoutLibfabricByName) {
  const Folder folder;
  const auto mpi = folder.add("libmpich.so.12", "only UCX");
  const auto objection = ofi_objection({"/lib/libc.so.6", mpi});
  EXPECT_NE(objection.find(mpi), objection.npos) << objection;
  EXPECT_NE(objection.find("--net=native"), objection.npos) << objection;
  EXPECT_EQ(objection.find('\n'), objection.npos);
}

TEST(PmChoice, TakesAnMpiThatLoadsLibfabric) {
  const Folder folder;
  EXPECT_EQ(ofi_objection({folder.add("libmpi.so.12"), "/usr/lib/libfabric.so.1"}), "");
}

TEST(PmChoice, TakesAnMpiWithLibfabricInside) {
  const Folder folder;
  EXPECT_EQ(ofi_objection({folder.add("libmpi.so.12", "x FI_PROVIDER_PATH y")}), "");
}

TEST(PmChoice, LooksForThePlugInOfOpenMpi) {
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

TEST(PmChoice, SaysNothingOfProgramsWithoutMpi) {
  EXPECT_EQ(ofi_objection({}), "");
  EXPECT_EQ(ofi_objection({"/lib/libc.so.6"}), "");
  EXPECT_NE(ofi_objection({"/nonexistent/libmpich.so.12"}), "");
}

}  // namespace
}  // namespace score::shepherd
