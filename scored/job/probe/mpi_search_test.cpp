#include "scored/job/probe/mpi_search.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace score::probe {
namespace {

namespace fs = std::filesystem;

class MpiSearch : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ / "conf.d"); }

  void TearDown() override { fs::remove_all(root_); }

  std::string add(const std::string& name, const std::string& text = "") {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
    return root_ / name;
  }

  fs::path root_ = fs::temp_directory_path() / ("mpi_search_" + std::to_string(getpid()));
};

TEST_F(MpiSearch, FollowsTheLinkersConfiguration) {
  const auto conf = add("ld.so.conf", "# x\n/a/lib # comment\ninclude conf.d/*.conf\nrelative\n");
  add("conf.d/b.conf", "/b/lib\ninclude /etc/ld.so.conf\n");
  const auto folders = library_folders("/c:relative::/a/lib", conf);
  const std::vector<std::string> expected{"/c",         "/a/lib", "/b/lib",  "/lib64",
                                          "/usr/lib64", "/lib",   "/usr/lib"};
  EXPECT_EQ(folders, expected);
}

TEST_F(MpiSearch, NeedsNoConfiguration) {
  EXPECT_EQ(library_folders("", root_ / "none").size(), 4U);
}

TEST_F(MpiSearch, CountsOneFileOnce) {
  const auto mpich = add("one/libmpich.so.12.2.1");
  fs::create_symlink("libmpich.so.12.2.1", root_ / "one/libmpich.so.12");
  const auto open = add("two/libmpi.so.40");
  fs::create_symlink(root_ / "one/libmpich.so.12", root_ / "two/libmpi.so.12");
  add("two/libmpicxx.so.40");
  fs::create_symlink("nowhere", root_ / "two/libmpi.so.41");
  const std::vector<std::string> expected{root_ / "one/libmpich.so.12", open};
  EXPECT_EQ(find_mpi({root_ / "one", root_ / "two", root_ / "none"}), expected);
}

}  // namespace
}  // namespace score::probe
