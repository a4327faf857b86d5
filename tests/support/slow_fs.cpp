// Shows a directory at a second path, where fsyncs are slow or operations are not answered:
// slow_fs BACKING MOUNT CONTROL
//
// CONTROL is a file with one word, which is read at every operation, so that a test can change it
// at any time:
//   "0"     behaves like the backing directory
//   "250"   each fsync takes 250 ms longer
//   "hold"  no fsync is answered; everything else is
//   "hang"  no operation is answered, and a process that waits for one cannot be killed, as with a
//           dead disk
//
// A process that waits while this one is stopped can be killed, as with NFS. When this one ends,
// the kernel answers the waiting operations with ENOTCONN.
#define FUSE_USE_VERSION 31
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <string>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <thread>
#include <unistd.h>

namespace {

std::string backing;
std::string control;

std::string mode_now() {
  char text[16] = {};
  const int file = open(control.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "0";
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  std::string word(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!word.empty() && word.back() == '\n') word.pop_back();
  return word;
}

void wait_while(const char* mode) {
  while (mode_now() == mode) std::this_thread::sleep_for(std::chrono::milliseconds{10});
}

// Returns the path of the file in the backing directory, after the file system answers again.
std::string place(const char* path) {
  wait_while("hang");
  return backing + path;
}

void be_slow() {
  wait_while("hang");
  wait_while("hold");
  const int delay = std::atoi(mode_now().c_str());
  if (delay > 0) std::this_thread::sleep_for(std::chrono::milliseconds{delay});
}

int result(long long done) {
  return done < 0 ? -errno : static_cast<int>(done);
}

int number_of(const fuse_file_info* info) {
  return static_cast<int>(info->fh);
}

int get_attributes(const char* path, struct stat* found, fuse_file_info*) {
  return result(lstat(place(path).c_str(), found));
}

int make_node(const char* path, mode_t mode, dev_t device) {
  return result(mknod(place(path).c_str(), mode, device));
}

int make_directory(const char* path, mode_t mode) {
  return result(mkdir(place(path).c_str(), mode));
}

int remove_file(const char* path) {
  return result(unlink(place(path).c_str()));
}

int remove_directory(const char* path) {
  return result(rmdir(place(path).c_str()));
}

int rename_file(const char* from, const char* to, unsigned flags) {
  if (flags != 0) return -EINVAL;
  return result(rename(place(from).c_str(), place(to).c_str()));
}

int change_mode(const char* path, mode_t mode, fuse_file_info*) {
  return result(chmod(place(path).c_str(), mode));
}

int change_owner(const char* path, uid_t user, gid_t group, fuse_file_info*) {
  return result(lchown(place(path).c_str(), user, group));
}

int truncate_file(const char* path, off_t size, fuse_file_info*) {
  return result(truncate(place(path).c_str(), size));
}

int set_times(const char* path, const timespec times[2], fuse_file_info*) {
  return result(utimensat(AT_FDCWD, place(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
}

int open_any(const char* path, int flags, mode_t mode, fuse_file_info* info) {
  const int file = open(place(path).c_str(), flags | O_CLOEXEC, mode);
  if (file < 0) return -errno;
  info->fh = static_cast<std::uint64_t>(file);
  return 0;
}

int open_file(const char* path, fuse_file_info* info) {
  return open_any(path, info->flags & ~O_APPEND, 0, info);
}

int create_file(const char* path, mode_t mode, fuse_file_info* info) {
  return open_any(path, (info->flags & ~O_APPEND) | O_CREAT, mode, info);
}

int read_file(const char*, char* into, std::size_t size, off_t at, fuse_file_info* info) {
  wait_while("hang");
  return result(pread(number_of(info), into, size, at));
}

int write_file(const char*, const char* from, std::size_t size, off_t at, fuse_file_info* info) {
  wait_while("hang");
  return result(pwrite(number_of(info), from, size, at));
}

int sync_file(const char*, int, fuse_file_info* info) {
  be_slow();
  return result(fsync(number_of(info)));
}

int sync_directory(const char*, int, fuse_file_info*) {
  be_slow();
  return 0;
}

int release_file(const char*, fuse_file_info* info) {
  return result(close(number_of(info)));
}

int list_directory(const char* path, void* into, fuse_fill_dir_t fill, off_t, fuse_file_info*,
                   fuse_readdir_flags) {
  DIR* directory = opendir(place(path).c_str());
  if (directory == nullptr) return -errno;
  while (const dirent* entry = readdir(directory)) {
    fill(into, entry->d_name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  }
  closedir(directory);
  return 0;
}

int describe(const char* path, struct statvfs* found) {
  return result(statvfs(place(path).c_str(), found));
}

void* begin(fuse_conn_info*, fuse_config* config) {
  config->use_ino = 1;
  config->entry_timeout = 0;  // each lookup of a path is a request that can be slow
  config->attr_timeout = 0;
  config->negative_timeout = 0;
  return nullptr;
}

fuse_operations operations() {
  fuse_operations all{};
  all.getattr = get_attributes;
  all.mknod = make_node;
  all.mkdir = make_directory;
  all.unlink = remove_file;
  all.rmdir = remove_directory;
  all.rename = rename_file;
  all.chmod = change_mode;
  all.chown = change_owner;
  all.truncate = truncate_file;
  all.utimens = set_times;
  all.open = open_file;
  all.create = create_file;
  all.read = read_file;
  all.write = write_file;
  all.fsync = sync_file;
  all.fsyncdir = sync_directory;
  all.release = release_file;
  all.readdir = list_directory;
  all.statfs = describe;
  all.init = begin;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  backing = argv[1];
  control = argv[3];
  umask(0);
  std::string name = argv[0];
  std::string foreground = "-f";
  std::string options = "-oallow_other,default_permissions,fsname=slow_fs";
  std::string at = argv[2];
  char* words[] = {name.data(), foreground.data(), options.data(), at.data(), nullptr};
  const fuse_operations all = operations();
  return fuse_main(4, words, &all, nullptr);
}
