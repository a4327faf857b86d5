// scored-pario is one server of a volume; see scored-pario(8).
#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "base/systemd/notify.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "pario/server/server.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <getopt.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace {

using namespace score;  // NOLINT(google-build-using-namespace)

constexpr const char* kUsage =
    "Usage: scored-pario --volume FILE --index N --directory DIR [--capacity SIZE] "
    "[--listener FD] [--background]\n\n"
    "Serves one part of a striped volume.\n\n"
    "Options:\n"
    "  --volume FILE     Description of the volume, with its key and its servers; -: from stdin\n"
    "  --index N         Index of this server among the servers of FILE, from 0\n"
    "  --directory DIR   Directory of names and data; no other server may use it\n"
    "  --capacity SIZE   Maximum size of the data here, such as 100G (its part of the volume's "
    "size)\n"
    "  --listener FD     Accept clients at this open descriptor of a listening socket\n"
    "  --background      Create DIR if needed, log to DIR/log, return when the server works\n"
    "  --help            Print this help and exit\n"
    "  --version         Print the version and exit\n";

pario::Server* running = nullptr;
bool goes_to_background = false;
bool has_made_directory = false;  // by --background

void on_signal(int) {
  if (running != nullptr) running->stop();
}

[[noreturn]] void fail_usage(const std::string& what) {
  std::fprintf(stderr, "scored-pario: %s; see scored-pario --help\n", what.c_str());
  std::exit(kExitError);
}

bool listens(int fd) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value == 1 &&
         ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

void take_option(int option, const char* value, pario::ServerOptions& options) {
  if (option == 'v') {
    std::string message;
    if (pario::read_volume(value, options.volume, message) != 0) fail_usage(message);
  } else if (option == 'i') {
    const auto index = parse_number<std::uint32_t>(value);
    if (!index) fail_usage(std::string("--index ") + value + ": expected a number from 0");
    options.server = *index;
  } else if (option == 'l') {
    const auto fd = parse_number<int>(value);
    if (!fd || !listens(*fd)) fail_usage(std::string("--listener ") + value + ": no such socket");
    options.listener = UniqueFd(*fd);
  } else if (option == 'd') {
    options.directory = value;
  } else if (option == 'b') {
    goes_to_background = true;
  } else {
    const auto capacity = parse_bytes(value);
    if (!capacity || capacity->value() == 0) {
      fail_usage(std::string("--capacity ") + value + ": expected a size such as 100G");
    }
    options.capacity = capacity->value();
  }
}

pario::ServerOptions parse(int argc, char** argv) {
  constexpr std::array<option, 9> kOptions{{{"volume", required_argument, nullptr, 'v'},
                                            {"index", required_argument, nullptr, 'i'},
                                            {"directory", required_argument, nullptr, 'd'},
                                            {"capacity", required_argument, nullptr, 'c'},
                                            {"background", no_argument, nullptr, 'b'},
                                            {"listener", required_argument, nullptr, 'l'},
                                            {"help", no_argument, nullptr, 'h'},
                                            {"version", no_argument, nullptr, 'V'},
                                            {nullptr, 0, nullptr, 0}}};
  pario::ServerOptions options;
  for (int letter = 0; (letter = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (letter == 'h' || letter == 'V') {
      std::fputs(letter == 'h' ? kUsage : "scored " SCORE_VERSION "\n", stdout);
      std::exit(kExitOk);
    }
    if (letter == '?') std::exit(kExitError);
    take_option(letter, optarg, options);
  }
  if (optind < argc) fail_usage(std::string("unexpected argument ") + argv[optind]);
  if (options.volume.servers.empty()) fail_usage("--volume is missing");
  if (options.directory.empty()) fail_usage("--directory is missing");
  const std::uint64_t part = pario::capacity_of(options.volume);
  if (options.capacity == 0 && part == 0) {
    fail_usage("--capacity is missing, and the description of the volume has no size");
  }
  if (options.capacity == 0 || (part != 0 && part < options.capacity)) options.capacity = part;
  if (options.server >= options.volume.servers.size()) {
    fail_usage("--index " + std::to_string(options.server) + ": the volume has " +
               std::to_string(options.volume.servers.size()) + " servers");
  }
  return options;
}

// Refuses a new server for whose part of the volume there is no room on the disk.
void check_room(const pario::ServerOptions& options) {
  const std::uint64_t needed = options.capacity * options.volume.replicas;

  struct statvfs disk {};

  if (::statvfs(options.directory.c_str(), &disk) != 0) return;
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (free >= needed) return;
  std::fprintf(stderr, "scored-pario: %s: the volume needs %s here, and %s are free\n",
               options.directory.c_str(), human_bytes(Bytes(needed)).c_str(),
               human_bytes(Bytes(free)).c_str());
  ::rmdir(options.directory.c_str());
  std::exit(kExitError);
}

// Continues in a child. The parent waits until the child works or has failed. Returns the end of a
// pipe that reports this.
int go_to_background(const pario::ServerOptions& options) {
  const std::string& directory = options.directory;
  std::array<int, 2> ends{};
  has_made_directory = ::mkdir(directory.c_str(), 0700) == 0;
  if (!has_made_directory && errno != EEXIST) {
    fail_usage(directory + ": " + std::strerror(errno));
  }
  if (has_made_directory) check_room(options);
  const int log =
      ::open((directory + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) fail_usage(directory + "/log: " + std::strerror(errno));
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_usage(std::strerror(errno));
  const pid_t child = ::fork();
  if (child < 0) fail_usage(std::strerror(errno));
  if (child > 0) {
    ::close(ends[1]);
    char works = 0;
    std::exit(::read(ends[0], &works, 1) == 1 ? kExitOk : kExitError);
  }
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::close(ends[0]);
  ::close(log);
  return ends[1];
}

// Up to now, messages were printed for the user.
void report_start(int pipe) {
  if (pipe < 0) return;
  ::dup2(STDOUT_FILENO, STDERR_FILENO);
  const char works = 1;
  if (::write(pipe, &works, 1) == 1) ::close(pipe);
}

}  // namespace

// The tasks of a job with this volume belong to the same user. Where others may read the program,
// exec leaves it dumpable.
int main(int argc, char** argv) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  pario::ServerOptions options = parse(argc, argv);
  const int pipe = goes_to_background ? go_to_background(options) : -1;
  const std::string name = options.volume.name;
  const std::uint32_t index = options.server;
  // The client receives EFBIG for a write beyond the limit of file sizes.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);

  pario::Server server(std::move(options));
  // This is set before start(), because clients may find its socket, and end the server, while it
  // still starts.
  running = &server;

  struct sigaction action {};

  action.sa_handler = on_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  std::string message;
  const int started = server.start(message);
  if (started != 0) running = nullptr;
  if (started == EBUSY && goes_to_background) {  // the server is already running
    report_start(pipe);
    return kExitOk;
  }
  if (started != 0) {
    std::fprintf(stderr, "scored-pario: %s\n", message.c_str());
    if (has_made_directory) server.remove_all();  // a failed start leaves no files
    return kExitError;
  }
  report_start(pipe);
  log_notice("Started to serve the volume", kv("volume", name), kv("index", index));
  notify_ready();
  const int error = server.run();
  running = nullptr;
  if (error != 0) std::fprintf(stderr, "scored-pario: %s\n", std::strerror(error));
  if (server.must_remove()) server.remove_all();
  return error == 0 ? kExitOk : kExitError;
}
