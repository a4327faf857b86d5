// scored-pario-mount mounts a volume as a directory, for unmodified programs.
#include "pario/client/volume.hpp"
#include "pario/mount/open_files.hpp"
#include "pario/mount/operations.hpp"
#include "pario/mount/session_io.hpp"

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <getopt.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace {

namespace pario = score::pario;

constexpr int kExitError = 125;  // as in all programs of Scored

constexpr const char* kUsage =
    "Usage: scored-pario-mount --volume VOLUME [--foreground] [--page-cache] [--ready FD] DIR\n\n"
    "Mounts a striped volume at the directory DIR; unmount with fusermount3 -u DIR.\n\n"
    "Options:\n"
    "  --volume VOLUME Name or description of the volume ($PARIO_VOLUME)\n"
    "  --page-cache    Keep data in the kernel's cache: programs can map files into shared memory\n"
    "                  before Linux 6.6; data that other nodes write is seen later\n"
    "  --foreground    Stay in the foreground, and unmount at the end\n"
    "  --ready FD      Write a byte to this open descriptor when the volume is mounted\n"
    "  --help          Print this help and exit\n"
    "  --version       Print the version and exit\n";

struct Options {
  std::string volume;
  std::string directory;
  bool stays = false;
  bool has_page_cache = false;
  int ready = -1;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "scored-pario-mount: %s\n", what.c_str());
  std::exit(kExitError);
}

int descriptor(const char* text) {
  int fd = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, fd);
  if (error != std::errc() || stop != end || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    fail(std::string("--ready ") + text + ": no such descriptor");
  }
  return fd;
}

Options parse(int argc, char** argv) {
  constexpr std::array<option, 7> kOptions{{{"volume", required_argument, nullptr, 'v'},
                                            {"page-cache", no_argument, nullptr, 'p'},
                                            {"foreground", no_argument, nullptr, 'f'},
                                            {"ready", required_argument, nullptr, 'r'},
                                            {"help", no_argument, nullptr, 'h'},
                                            {"version", no_argument, nullptr, 'V'},
                                            {nullptr, 0, nullptr, 0}}};
  Options options;
  if (const char* volume = std::getenv("PARIO_VOLUME")) options.volume = volume;
  for (int letter = 0; (letter = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (letter == 'h' || letter == 'V') {
      std::fputs(letter == 'h' ? kUsage : "scored " SCORE_VERSION "\n", stdout);
      std::exit(0);
    }
    if (letter == '?') std::exit(kExitError);
    if (letter == 'v') options.volume = optarg;
    if (letter == 'f') options.stays = true;
    if (letter == 'p') options.has_page_cache = true;
    if (letter == 'r') options.ready = descriptor(optarg);
  }
  if (options.volume.empty()) fail("--volume is missing; see scored-pario-mount --help");
  if (optind + 1 != argc) fail("expected one directory; see scored-pario-mount --help");
  options.directory = argv[optind];
  // The mount runs in the root directory; a name that is no file is that of a named volume.
  options.volume = std::filesystem::absolute(pario::volume_path(options.volume)).string();
  return options;
}

// There is no thread yet. The contexts of PM belong to the process that opened them, so the volume
// is opened again after the fork into the background.
int serve(fuse_session* session, const Options& options, std::unique_ptr<pario::Volume>& volume) {
  std::string message;
  if (!options.stays) volume.reset();
  if (fuse_daemonize(options.stays ? 1 : 0) != 0) return kExitError;
  if (!volume && pario::Volume::open(options.volume, volume, message) != 0) return kExitError;
  if (options.ready >= 0 && ::write(options.ready, "1", 1) != 1) return kExitError;
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, 16);
  int result = 0;
  {
    const pario::OpenFileReporter reporter(*volume,
                                           [session] { return fuse_session_exited(session) != 0; });
    result = fuse_session_loop_mt(session, config);
    volume->stop_waiting();
    pario::end_waiting_locks();
  }
  fuse_loop_cfg_destroy(config);
  return result == 0 || result == SIGTERM || result == SIGINT ? 0 : kExitError;
}

}  // namespace

// A job's tasks belong to the same user as its mount. Where others may read the program, exec
// leaves it dumpable.
int main(int argc, char** argv) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const Options options = parse(argc, argv);
  if (::access("/dev/fuse", R_OK | W_OK) != 0) {
    fail("no access to /dev/fuse on this node: load the kernel module fuse, or use libpario");
  }
  pario::MountOptions mount;
  mount.has_page_cache = options.has_page_cache;
  std::string message;
  if (pario::Volume::open(options.volume, mount.volume, message) != 0) fail(message);
  std::string name = argv[0];
  std::string flag = "-o";
  // libfuse requires the maximum read size here as well as in the operations.
  std::string value = "fsname=pario,subtype=pario,default_permissions,nosuid,nodev,max_read=" +
                      std::to_string(pario::kMaxDataBytes);
  std::array<char*, 3> words{name.data(), flag.data(), value.data()};
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(words.size()), words.data());
  const fuse_lowlevel_ops& operations = pario::mount_operations();
  fuse_session* session = fuse_session_new(&arguments, &operations, sizeof operations, &mount);
  if (session == nullptr) return kExitError;
  mount.session = session;
  int code = kExitError;
  if (fuse_set_signal_handlers(session) == 0) {
    if (fuse_session_mount(session, options.directory.c_str()) == 0) {
      if (pario::amend_messages(session) == 0) code = serve(session, options, mount.volume);
      fuse_session_unmount(session);
    }
    fuse_remove_signal_handlers(session);
  }
  fuse_session_destroy(session);
  return code;
}
