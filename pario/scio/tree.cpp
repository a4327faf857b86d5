#include "pario/scio/tree.hpp"

#include "pario/client/handles.hpp"
#include "pario/client/path.hpp"
#include "pario/core/times.hpp"
#include "pario/scio/copy.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace score::pario {
namespace {

void check(int error, const std::string& path) {
  if (error != 0) throw path + ": " + std::strerror(error);
}

std::string last_name(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

void leave_out(const std::string& path) {
  std::fprintf(stderr, "scio: %s: neither a file, a directory nor a link; left out\n",
               path.c_str());
}

// Copies one tree into the volume, depth first.
class Importer {
 public:
  explicit Importer(pario_volume* volume) : handle_(volume), volume_(*volume->volume) {}

  TreeResult run(const std::string& local, const std::string& path) {
    FileStatus status;
    const bool is_inside = find_path(volume_, path, status) == 0 && S_ISDIR(status.mode);
    copy(local, is_inside ? path + "/" + last_name(local) : path);
    return result_;
  }

 private:
  void copy(const std::string& local, const std::string& path) {
    struct stat status {};

    check(::lstat(local.c_str(), &status) == 0 ? 0 : errno, local);
    if (S_ISDIR(status.st_mode)) return copy_directory(local, path, status.st_mode);
    if (S_ISLNK(status.st_mode)) return copy_link(local, path);
    if (!S_ISREG(status.st_mode)) return leave_out(local);
    result_.bytes += copy_in(handle_, local, path).bytes;
    ++result_.files;
    FileStatus made;
    check(find_path(volume_, path, made), path);
    check(volume_.set_mode(made.id, status.st_mode & 07777), path);
    const Volume::Times times{kSetModified, to_ns(status.st_mtim), 0};
    check(volume_.set_times(made.id, times), path);
  }

  void copy_directory(const std::string& local, const std::string& path, mode_t mode) {
    Volume::Name name;
    FileStatus made;
    check(find_parent(volume_, path, name), path);
    check(volume_.create(name.parent, name.name, S_IFDIR | (mode & 07777), false, made), path);
    if (!S_ISDIR(made.mode)) throw path + ": is no directory";
    for (const auto& entry : std::filesystem::directory_iterator(local)) {
      copy(entry.path().string(), path + "/" + entry.path().filename().string());
    }
  }

  void copy_link(const std::string& local, const std::string& path) {
    std::array<char, kMaxTargetBytes + 1> target{};
    const ssize_t length = ::readlink(local.c_str(), target.data(), target.size());
    check(length < 0 ? errno : 0, local);
    Volume::Name name;
    FileStatus made;
    check(find_parent(volume_, path, name), path);
    int error = volume_.unlink(name.parent, name.name);
    if (error == 0 || error == ENOENT) {
      error =
          volume_.make_symbolic_link(name, {target.data(), static_cast<std::size_t>(length)}, made);
    }
    check(error, path);
    ++result_.files;
  }

  pario_volume* handle_;
  Volume& volume_;
  TreeResult result_;
};

// Copies one tree out of the volume. Names in a volume are single components without "..", so
// nothing is written outside of the target.
class Exporter {
 public:
  explicit Exporter(pario_volume* volume) : handle_(volume), volume_(*volume->volume) {}

  TreeResult run(const std::string& path, const std::string& local) {
    FileStatus status;
    check(find_path(volume_, path, status), path);
    const std::string name = last_name(path);
    const bool is_inside = std::filesystem::is_directory(local) && !name.empty();
    copy({status.id, path}, is_inside ? local + "/" + name : local);
    return result_;
  }

 private:
  struct Source {
    FileId id = 0;
    std::string path;
  };

  void copy(const Source& from, const std::string& local) {
    FileStatus status;
    check(volume_.status(from.id, status), from.path);
    if (S_ISDIR(status.mode)) return copy_directory(from, status.mode, local);
    if (S_ISLNK(status.mode)) return copy_link(from, local);
    if (!S_ISREG(status.mode)) return leave_out(from.path);
    // A link of that name must not lead the data elsewhere.
    if (std::filesystem::is_symlink(local)) ::unlink(local.c_str());
    result_.bytes += copy_out(handle_, from.path, local).bytes;
    ++result_.files;
    check(::chmod(local.c_str(), status.mode & 0777) == 0 ? 0 : errno, local);
    const std::array<timespec, 2> times{to_timespec(status.modified_ns),
                                        to_timespec(status.modified_ns)};
    check(::utimensat(AT_FDCWD, local.c_str(), times.data(), 0) == 0 ? 0 : errno, local);
  }

  void copy_directory(const Source& from, std::uint32_t mode, const std::string& local) {
    if (std::filesystem::is_symlink(local)) ::unlink(local.c_str());
    const bool is_made = ::mkdir(local.c_str(), 0700) == 0;
    if (!is_made && errno != EEXIST) check(errno, local);
    std::vector<Entry> entries;
    check(volume_.read_directory(from.id, entries), from.path);
    for (const Entry& entry : entries) {
      copy({entry.id, from.path + "/" + entry.name}, local + "/" + entry.name);
    }
    if (is_made) check(::chmod(local.c_str(), mode & 0777) == 0 ? 0 : errno, local);
  }

  void copy_link(const Source& from, const std::string& local) {
    std::string target;
    check(volume_.read_symbolic_link(from.id, target), from.path);
    ::unlink(local.c_str());
    check(::symlink(target.c_str(), local.c_str()) == 0 ? 0 : errno, local);
    ++result_.files;
  }

  pario_volume* handle_;
  Volume& volume_;
  TreeResult result_;
};

}  // namespace

TreeResult copy_tree_in(pario_volume* volume, const std::string& local, const std::string& path) {
  return Importer(volume).run(local, path);
}

TreeResult copy_tree_out(pario_volume* volume, const std::string& path, const std::string& local) {
  return Exporter(volume).run(path, local);
}

int make_local_directory(pario_volume* volume, const std::string& path) {
  Volume::Name name;
  FileStatus made;
  if (const int error = find_parent(*volume->volume, path, name)) return -error;
  return -volume->volume->make_local_directory(name.parent, name.name, 0755, made);
}

void print_layout(pario_volume* volume, const struct stat& status) {
  const bool is_directory = S_ISDIR(status.st_mode);
  const bool is_local_one =
      is_directory ? volume->volume->layout_in(status.st_ino) != 0 : is_local(status.st_ino);
  std::printf("layout %s\n", is_local_one ? "local" : "striped");
  if (is_local_one && !is_directory) std::printf("server %u\n", home_of(status.st_ino));
}

}  // namespace score::pario
