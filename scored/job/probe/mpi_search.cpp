#include "scored/job/probe/mpi_search.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <filesystem>
#include <glob.h>

namespace score::probe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfBytes = 64UL * 1024;

std::vector<std::string> paths_of(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

void read_conf(const std::string& path, bool may_include, std::vector<std::string>& folders) {
  const auto text = read_file(path, kMaxConfBytes);
  if (!text) return;
  for (std::string_view line : split(*text, '\n')) {
    line = trim(line.substr(0, line.find('#')));
    if (line.starts_with('/')) folders.emplace_back(line);
    if (!may_include || !line.starts_with("include ")) continue;
    const std::string pattern(trim(line.substr(8)));
    const fs::path whole = fs::path(path).parent_path() / pattern;
    for (const auto& one : paths_of(whole)) read_conf(one, false, folders);
  }
}

bool is_mpi(const std::string& name) {
  return name.starts_with("libmpi.so.") || name.starts_with("libmpich.so.");
}

}  // namespace

std::vector<std::string> library_folders(const std::string& library_path, const std::string& conf) {
  std::vector<std::string> all;
  for (const auto folder : split(library_path, ':')) {
    if (folder.starts_with('/')) all.emplace_back(folder);
  }
  read_conf(conf, true, all);
  all.insert(all.end(), {"/lib64", "/usr/lib64", "/lib", "/usr/lib"});
  std::vector<std::string> once;
  for (const auto& folder : all) {
    if (std::ranges::find(once, folder) == once.end()) once.push_back(folder);
  }
  return once;
}

std::vector<std::string> find_mpi(const std::vector<std::string>& folders) {
  std::vector<std::string> found;
  std::vector<fs::path> files;
  for (const auto& folder : folders) {
    std::error_code error;
    std::vector<std::string> here;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (is_mpi(entry.path().filename())) here.push_back(entry.path());
    }
    std::ranges::sort(here);
    for (const auto& path : here) {
      const auto file = fs::canonical(path, error);
      if (error || std::ranges::find(files, file) != files.end()) continue;
      files.push_back(file);
      found.push_back(path);
    }
  }
  return found;
}

}  // namespace score::probe
