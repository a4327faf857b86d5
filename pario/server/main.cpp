// scored-pario: one server of a volume; scored-pario(8).
#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "base/systemd/notify.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "pario/server/server.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <sys/resource.h>

namespace {

using namespace score;  // NOLINT(google-build-using-namespace)

constexpr const char* kUsage =
    "Usage: scored-pario --volume FILE --index N --directory DIR --capacity SIZE\n\n"
    "Serves one part of a striped volume.\n\n"
    "Options:\n"
    "  --volume FILE     Description of the volume, with its key and its servers\n"
    "  --index N         This server's place among the servers of FILE, from 0\n"
    "  --directory DIR   Keeps names and data; no other server may use it\n"
    "  --capacity SIZE   Most data that is kept here, such as 100G\n"
    "  --help            Print this help and exit\n"
    "  --version         Print the version and exit\n";

pario::Server* running = nullptr;

void on_signal(int) {
  if (running != nullptr) running->stop();
}

[[noreturn]] void fail_usage(const std::string& what) {
  std::fprintf(stderr, "scored-pario: %s; see scored-pario --help\n", what.c_str());
  std::exit(kExitError);
}

void take_option(int option, const char* value, pario::ServerOptions& options) {
  if (option == 'v') {
    std::string message;
    if (pario::read_volume(value, options.volume, message) != 0) fail_usage(message);
  } else if (option == 'i') {
    const auto index = parse_number<std::uint32_t>(value);
    if (!index) fail_usage(std::string("--index ") + value + ": expected a number from 0");
    options.server = *index;
  } else if (option == 'd') {
    options.directory = value;
  } else {
    const auto capacity = parse_bytes(value);
    if (!capacity || capacity->value() == 0) {
      fail_usage(std::string("--capacity ") + value + ": expected a size such as 100G");
    }
    options.capacity = capacity->value();
  }
}

pario::ServerOptions parse(int argc, char** argv) {
  constexpr std::array<option, 7> kOptions{{{"volume", required_argument, nullptr, 'v'},
                                            {"index", required_argument, nullptr, 'i'},
                                            {"directory", required_argument, nullptr, 'd'},
                                            {"capacity", required_argument, nullptr, 'c'},
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
  if (options.capacity == 0) fail_usage("--capacity is missing");
  if (options.server >= options.volume.servers.size()) {
    fail_usage("--index " + std::to_string(options.server) + ": the volume has " +
               std::to_string(options.volume.servers.size()) + " servers");
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  pario::ServerOptions options = parse(argc, argv);
  const std::string name = options.volume.name;
  const std::uint32_t index = options.server;
  // A file beyond the limit of its size is EFBIG to the client.
  std::signal(SIGXFSZ, SIG_IGN);

  struct sigaction action {};

  action.sa_handler = on_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);

  pario::Server server(std::move(options));
  std::string message;
  if (server.start(message) != 0) {
    std::fprintf(stderr, "scored-pario: %s\n", message.c_str());
    return kExitError;
  }
  running = &server;
  log_notice("serve volume", kv("volume", name), kv("index", index));
  notify_ready();
  const int error = server.run();
  running = nullptr;
  if (error != 0) std::fprintf(stderr, "scored-pario: %s\n", std::strerror(error));
  return error == 0 ? kExitOk : kExitError;
}
