#pragma once
// FailingDisk is a disk for tests that is full or broken when the test says so. While one exists,
// newly opened SQLite databases use it (a VFS over the default one); files of other kinds are not
// affected.

#include <sqlite3.h>

#include <atomic>
#include <cstdint>

namespace score::head {

class FailingDisk {
 public:
  enum class Mode {
    Works,
    Full,       // writes fail with ENOSPC
    BadWrites,  // writes fail with EIO
    BadSyncs,   // writes succeed, fsync fails with EIO
  };

  FailingDisk() {
    real_ = sqlite3_vfs_find(nullptr);
    vfs_ = *real_;
    vfs_.zName = "failing disk";
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.pAppData = this;
    vfs_.xOpen = &FailingDisk::open;
    sqlite3_vfs_register(&vfs_, 1);
  }

  // All databases that were opened must have been closed.
  ~FailingDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(real_, 1);
  }

  FailingDisk(const FailingDisk&) = delete;
  FailingDisk& operator=(const FailingDisk&) = delete;

  // May be called from any thread.
  void set(Mode mode) { mode_ = mode; }

  // Lets this many writes succeed; each later one fails with EIO.
  void fail_after(std::int64_t writes) { writes_left_ = writes; }

 private:
  struct File {  // the real file follows it in memory
    sqlite3_file base;
    FailingDisk* disk;
  };

  static File& own(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }

  static sqlite3_file* real(sqlite3_file* file) {
    return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + sizeof(File));
  }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
    auto* disk = static_cast<FailingDisk*>(vfs->pAppData);
    own(file).base.pMethods = nullptr;
    own(file).disk = disk;
    const int status = disk->real_->xOpen(disk->real_, name, real(file), flags, out);
    if (real(file)->pMethods != nullptr) own(file).base.pMethods = methods();
    return status;
  }

  static int write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 offset) {
    const Mode mode = own(file).disk->mode_;
    if (mode == Mode::Full) return SQLITE_FULL;
    if (mode == Mode::BadWrites || own(file).disk->writes_left_-- <= 0) return SQLITE_IOERR_WRITE;
    return real(file)->pMethods->xWrite(real(file), data, bytes, offset);
  }

  static int sync(sqlite3_file* file, int flags) {
    if (own(file).disk->mode_ != Mode::Works) return SQLITE_IOERR_FSYNC;
    return real(file)->pMethods->xSync(real(file), flags);
  }

  // Calls the real file's method of the same name.
  template <auto kMethod, typename... Arguments>
  static auto forward(sqlite3_file* file, Arguments... arguments) {
    return (real(file)->pMethods->*kMethod)(real(file), arguments...);
  }

  static const sqlite3_io_methods* methods() {
    using M = sqlite3_io_methods;
    static const M kMethods = [] {
      M m{};
      m.iVersion = 2;
      m.xClose = &forward<&M::xClose>;
      m.xRead = &forward<&M::xRead, void*, int, sqlite3_int64>;
      m.xWrite = &write;
      m.xTruncate = &forward<&M::xTruncate, sqlite3_int64>;
      m.xSync = &sync;
      m.xFileSize = &forward<&M::xFileSize, sqlite3_int64*>;
      m.xLock = &forward<&M::xLock, int>;
      m.xUnlock = &forward<&M::xUnlock, int>;
      m.xCheckReservedLock = &forward<&M::xCheckReservedLock, int*>;
      m.xFileControl = &forward<&M::xFileControl, int, void*>;
      m.xSectorSize = &forward<&M::xSectorSize>;
      m.xDeviceCharacteristics = &forward<&M::xDeviceCharacteristics>;
      m.xShmMap = &forward<&M::xShmMap, int, int, int, void volatile**>;
      m.xShmLock = &forward<&M::xShmLock, int, int, int>;
      m.xShmBarrier = &forward<&M::xShmBarrier>;
      m.xShmUnmap = &forward<&M::xShmUnmap, int>;
      return m;
    }();
    return &kMethods;
  }

  sqlite3_vfs* real_ = nullptr;
  sqlite3_vfs vfs_{};
  std::atomic<Mode> mode_ = Mode::Works;
  std::atomic<std::int64_t> writes_left_ = INT64_MAX;
};

}  // namespace score::head
