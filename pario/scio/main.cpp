// scio: files of a volume from the command line; scio(1).
#include "pario/client/pario.h"
#include "pario/scio/copy.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <getopt.h>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

namespace pario = score::pario;

constexpr int kExitError = 125;  // as of all programs of Scored

constexpr const char* kUsage =
    "Usage: scio [--volume FILE] ls [PATH] | stat PATH | rm PATH | mkdir PATH | df | cp FROM TO\n"
    "       scio create NAME --server HOST:PORT [--server HOST:PORT]... [--stripe SIZE] > FILE\n\n"
    "Lists, copies and removes files of a striped volume. cp copies from or to the volume: the\n"
    "name there begins with a colon, as in `scio cp data.h5 :/data.h5`.\n\n"
    "Options:\n"
    "  --volume FILE       Description of the volume (the file named by $PARIO_VOLUME)\n"
    "  --server HOST:PORT  A server of the volume that create describes\n"
    "  --stripe BYTES      Bytes of a chunk of that volume, a power of two (1048576)\n"
    "  --help              Print this help and exit\n"
    "  --version           Print the version and exit\n";

struct Options {
  std::string volume;
  std::vector<std::string> servers;
  std::string stripe = "1048576";
  std::vector<std::string> words;
};

std::string error_text(int result) {
  return std::strerror(-result);
}

std::string argument(const Options& options, std::size_t index, const char* otherwise = nullptr) {
  if (index < options.words.size()) return options.words[index];
  if (otherwise == nullptr) throw "'" + options.words[0] + "' needs a path; see scio --help";
  return otherwise;
}

void check(const std::string& path, int result) {
  if (result < 0) throw path + ": " + error_text(result);
}

void print_line(const struct stat& status, const std::string& name) {
  std::array<char, 32> time{};
  tm parts{};
  ::localtime_r(&status.st_mtim.tv_sec, &parts);
  std::strftime(time.data(), time.size(), "%Y-%m-%d %H:%M", &parts);
  std::printf("%c%04o %14jd %s %s\n", S_ISDIR(status.st_mode) ? 'd' : '-', status.st_mode & 07777U,
              static_cast<std::intmax_t>(status.st_size), time.data(), name.c_str());
}

int add_name(void* context, const char* name, const struct stat*) {
  static_cast<std::vector<std::string>*>(context)->emplace_back(name);
  return 0;
}

void list(pario_volume* volume, const Options& options) {
  const std::string path = argument(options, 1, "/");
  std::vector<std::string> names;

  struct stat status {};

  check(path, pario_stat(volume, path.c_str(), &status));
  if (!S_ISDIR(status.st_mode)) return print_line(status, path);
  check(path, pario_read_directory(volume, path.c_str(), add_name, &names));
  std::ranges::sort(names);
  for (const std::string& name : names) {
    // An entry that was removed meanwhile is left out.
    if (pario_stat(volume, (path + "/" + name).c_str(), &status) == 0) print_line(status, name);
  }
}

void print_status(pario_volume* volume, const Options& options) {
  const std::string path = argument(options, 1);

  struct stat status {};

  check(path, pario_stat(volume, path.c_str(), &status));
  std::printf("path %s\ntype %s\nsize %jd\nspace %jd\nmode %04o\nnumber %ju\nstripe %" PRIu64
              "\nservers %u\n",
              path.c_str(), S_ISDIR(status.st_mode) ? "directory" : "file",
              static_cast<std::intmax_t>(status.st_size),
              static_cast<std::intmax_t>(status.st_blocks) * 512, status.st_mode & 07777U,
              static_cast<std::uintmax_t>(status.st_ino), pario_stripe(volume),
              pario_servers(volume));
}

void remove(pario_volume* volume, const Options& options) {
  const std::string path = argument(options, 1);
  int result = pario_unlink(volume, path.c_str());
  if (result == -EISDIR) result = pario_rmdir(volume, path.c_str());
  check(path, result);
}

void make_directory(pario_volume* volume, const Options& options) {
  const std::string path = argument(options, 1);
  check(path, pario_mkdir(volume, path.c_str(), 0755));
}

void print_space(pario_volume* volume, const Options&) {
  std::printf("%8s %16s %16s %16s %10s\n", "SERVER", "CAPACITY", "USED", "FREE", "FILES");
  for (std::uint32_t server = 0; server < pario_servers(volume); ++server) {
    pario_space space{};
    check("server " + std::to_string(server), pario_get_server_space(volume, server, &space));
    const std::uint64_t free = space.used < space.capacity ? space.capacity - space.used : 0;
    std::printf("%8u %16" PRIu64 " %16" PRIu64 " %16" PRIu64 " %10" PRIu64 "\n", server,
                space.capacity, space.used, free, space.files);
  }
}

void copy(pario_volume* volume, const Options& options) {
  const std::string from = argument(options, 1);
  const std::string to = argument(options, 2);
  const bool is_out = from.starts_with(':');
  if (is_out == to.starts_with(':')) throw std::string("cp needs one name that begins with ':'");
  const pario::CopyResult result = is_out ? pario::copy_out(volume, from.substr(1), to)
                                          : pario::copy_in(volume, from, to.substr(1));
  std::printf("%" PRIu64 " bytes, checksum %016" PRIx64 "\n", result.bytes, result.checksum);
}

// The description of a new volume, with a fresh key.
void create(const Options& options) {
  if (options.servers.empty()) throw std::string("create needs --server HOST:PORT");
  std::string text = "name " + argument(options, 1) + "\nkey ";
  std::random_device random;
  for (int i = 0; i < 4; ++i) {
    std::array<char, 9> part{};
    std::snprintf(part.data(), part.size(), "%08x", random());
    text += part.data();
  }
  text += "\nstripe " + options.stripe + "\n";
  for (const std::string& server : options.servers) text += "server " + server + "\n";
  std::fputs(text.c_str(), stdout);
}

Options parse(int argc, char** argv) {
  constexpr std::array<option, 6> kOptions{{{"volume", required_argument, nullptr, 'v'},
                                            {"server", required_argument, nullptr, 's'},
                                            {"stripe", required_argument, nullptr, 'c'},
                                            {"help", no_argument, nullptr, 'h'},
                                            {"version", no_argument, nullptr, 'V'},
                                            {nullptr, 0, nullptr, 0}}};
  Options options;
  for (int letter = 0; (letter = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (letter == 'h' || letter == 'V') {
      std::fputs(letter == 'h' ? kUsage : "scored " SCORE_VERSION "\n", stdout);
      std::exit(0);
    }
    if (letter == '?') std::exit(kExitError);
    if (letter == 'v') options.volume = optarg;
    if (letter == 's') options.servers.emplace_back(optarg);
    if (letter == 'c') options.stripe = optarg;
  }
  options.words.assign(argv + optind, argv + argc);
  return options;
}

using Command = void (*)(pario_volume*, const Options&);

void run(const Options& options) {
  const std::map<std::string, Command> commands{{"ls", list},   {"stat", print_status},
                                                {"rm", remove}, {"df", print_space},
                                                {"cp", copy},   {"mkdir", make_directory}};
  const std::string word = options.words.empty() ? "" : options.words[0];
  if (word == "create") return create(options);
  const auto command = commands.find(word);
  if (command == commands.end()) {
    throw word.empty() ? "no command; see scio --help"
                       : "'" + word + "' is not a command; see scio --help";
  }
  pario_volume* volume = nullptr;
  std::array<char, 512> message{};
  const char* file = options.volume.empty() ? nullptr : options.volume.c_str();
  if (pario_open_volume(file, &volume, message.data(), message.size()) != 0) {
    throw std::string(message.data());
  }
  const std::unique_ptr<pario_volume, void (*)(pario_volume*)> owned(volume, pario_close_volume);
  command->second(volume, options);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  try {
    run(options);
  } catch (const std::string& message) {
    std::fprintf(stderr, "scio: %s\n", message.c_str());
    return kExitError;
  }
  return std::fflush(stdout) == 0 ? 0 : kExitError;
}
