// Creates a directory for one test, and removes it at the end.
#pragma once

#include "base/os/fd.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>

namespace score::pario {

class TestDirectory {
 public:
  TestDirectory() {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
    fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

  ~TestDirectory() { std::filesystem::remove_all(path_); }

  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }

  int fd() const { return fd_.get(); }

 private:
  std::string path_ = "/tmp/pario_test_XXXXXX";
  UniqueFd fd_;
};

}  // namespace score::pario
