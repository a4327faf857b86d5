// scio is a tool for the files of a volume; see scio(1).
#include "pario/client/pario.h"
#include "pario/scio/copy.hpp"
#include "pario/scio/named.hpp"
#include "pario/scio/tree.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <getopt.h>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

namespace pario = score::pario;

constexpr int kExitError = 125;  // as in all programs of Scored

constexpr const char* kUsage =
    "Usage: scio [--volume VOLUME] ls [PATH] | stat PATH | rm PATH | df\n"
    "       scio [--volume VOLUME] mkdir [--layout local] PATH\n"
    "       scio [--volume VOLUME] cp [-r] FROM TO\n"
    "       scio create NAME --hosts HOST,... --directory DIR --size SIZE [OPTION]...\n"
    "       scio create NAME --server HOST:PORT [--server HOST:PORT]... [OPTION]... > FILE\n"
    "       scio ls | start NAME | destroy NAME\n\n"
    "Lists, copies and removes files of a striped volume. Paths may begin with the name of a "
    "volume:\n"
    "NAME:/path; cp needs that, or a colon, for the name in the volume. create makes a named "
    "volume\n"
    "and starts its servers, or prints a description for servers that are started by hand.\n\n"
    "Options:\n"
    "  --volume VOLUME     Name or description of the volume ($PARIO_VOLUME)\n"
    "  --server HOST:PORT  A server of the volume that create describes\n"
    "  --hosts HOST,...    Hosts on which create starts servers\n"
    "  --servers N         Number of servers (one per host)\n"
    "  --port N            Port of the first server; the others use the following ports (7711)\n"
    "  --directory DIR     Directory of the servers' data, on each host\n"
    "  --launcher COMMAND  Program that runs a command on a remote host (ssh)\n"
    "  --size SIZE         Size of the volume, such as 100G\n"
    "  --stripe SIZE       Bytes of a chunk of that volume, a power of two (1M)\n"
    "  --replicas 1|2      Number of servers that store each part (1)\n"
    "  --transport pm|tcp  Transport of data between nodes (tcp)\n"
    "  --layout LAYOUT     create, mkdir: striped over all servers, or local: each file on the "
    "server\n"
    "                      of the node that makes it (striped, or that of the directory above)\n"
    "  --wait SECONDS      How long requests wait for a server that does not answer (1)\n"
    "  --expires TIME      When the servers remove it: a time from now such as 7d, or a Unix time\n"
    "  -r, --recursive     cp: copy a directory with all that is in it\n"
    "  --force             destroy: continue even if a server cannot be reached\n"
    "  --help              Print this help and exit\n"
    "  --version           Print the version and exit\n";

struct Options {
  std::string volume;
  pario::NewVolume wanted;
  bool force = false;
  bool is_recursive = false;
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

// Returns the letter of ls -l.
char type_letter(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return 'd';
    case S_IFLNK:
      return 'l';
    case S_IFIFO:
      return 'p';
    case S_IFSOCK:
      return 's';
    default:
      return '-';
  }
}

void print_line(const struct stat& status, const std::string& name) {
  std::printf("%c%04o %14jd %s %s\n", type_letter(status.st_mode), status.st_mode & 07777U,
              static_cast<std::intmax_t>(status.st_size),
              pario::local_time(status.st_mtim.tv_sec).c_str(), name.c_str());
}

int add_name(void* context, const char* name, const struct stat*) {
  static_cast<std::vector<std::string>*>(context)->emplace_back(name);
  return 0;
}

// Names the servers that do not answer, because what lies on them is missing.
void report_dead_servers(pario_volume* volume) {
  for (std::uint32_t server = 0; server < pario_servers(volume); ++server) {
    pario_space space{};
    if (pario_get_server_space(volume, server, &space) != -EIO) continue;
    std::fprintf(stderr, "scio: server %u does not answer; what lies on it is missing\n", server);
  }
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
    // An entry that was removed in the meantime is left out.
    if (pario_stat(volume, (path + "/" + name).c_str(), &status) == 0) print_line(status, name);
  }
  report_dead_servers(volume);
}

void print_status(pario_volume* volume, const Options& options) {
  const std::string path = argument(options, 1);

  struct stat status {};

  const int result = pario_stat(volume, path.c_str(), &status);
  if (result == -EIO) report_dead_servers(volume);
  check(path, result);
  std::printf("path %s\ntype %s\nsize %jd\nspace %jd\nmode %04o\nnumber %ju\nstripe %" PRIu64
              "\nservers %u\n",
              path.c_str(), S_ISDIR(status.st_mode) ? "directory" : "file",
              static_cast<std::intmax_t>(status.st_size),
              static_cast<std::intmax_t>(status.st_blocks) * 512, status.st_mode & 07777U,
              static_cast<std::uintmax_t>(status.st_ino), pario_stripe(volume),
              pario_servers(volume));
  pario::print_layout(volume, status);
}

void remove(pario_volume* volume, const Options& options) {
  const std::string path = argument(options, 1);
  int result = pario_unlink(volume, path.c_str());
  if (result == -EISDIR) result = pario_rmdir(volume, path.c_str());
  check(path, result);
}

void make_directory(pario_volume* volume, const Options& options) {
  const std::string path = argument(options, 1);
  const std::string& layout = options.wanted.layout;
  if (layout.empty()) return check(path, pario_mkdir(volume, path.c_str(), 0755));
  if (layout != "local") throw "--layout " + layout + ": mkdir expects local";
  check(path, pario::make_local_directory(volume, path));
}

void print_space(pario_volume* volume, const Options&) {
  std::printf("%8s %16s %16s %16s %10s %16s %10s %10s\n", "SERVER", "CAPACITY", "USED", "FREE",
              "FILES", "PM-BYTES", "PM-CLIENTS", "FALLBACKS");
  for (std::uint32_t server = 0; server < pario_servers(volume); ++server) {
    pario_space space{};
    pario_traffic traffic{};
    const int reached = pario_get_server_space(volume, server, &space);
    if (reached == -EIO) {
      std::printf("%8u %16s\n", server, "dead");
      continue;
    }
    check("server " + std::to_string(server), reached);
    check("server " + std::to_string(server), pario_get_server_traffic(volume, server, &traffic));
    const std::uint64_t free = space.used < space.capacity ? space.capacity - space.used : 0;
    std::printf("%8u %16" PRIu64 " %16" PRIu64 " %16" PRIu64 " %10" PRIu64 " %16" PRIu64
                " %10" PRIu64 " %10" PRIu64 "\n",
                server, space.capacity, space.used, free, space.files, traffic.pm_bytes,
                traffic.pm_clients, traffic.tcp_fallbacks);
  }
}

void copy(pario_volume* volume, const Options& options) {
  const std::string from = argument(options, 1);
  const std::string to = argument(options, 2);
  const bool is_out = from.starts_with(':');
  if (is_out && to.starts_with(':') && !options.is_recursive) {
    const std::uint64_t bytes = pario::copy_inside(volume, from.substr(1), to.substr(1));
    std::printf("%" PRIu64 " bytes\n", bytes);
    return;
  }
  if (is_out == to.starts_with(':')) throw std::string("cp needs one name that begins with ':'");
  if (options.is_recursive) {
    const pario::TreeResult tree = is_out ? pario::copy_tree_out(volume, from.substr(1), to)
                                          : pario::copy_tree_in(volume, from, to.substr(1));
    std::printf("%" PRIu64 " files, %" PRIu64 " bytes\n", tree.files, tree.bytes);
    return;
  }
  const pario::CopyResult result = is_out ? pario::copy_out(volume, from.substr(1), to)
                                          : pario::copy_in(volume, from, to.substr(1));
  std::printf("%" PRIu64 " bytes, checksum %016" PRIx64 "\n", result.bytes, result.checksum);
}

void create(const Options& options) {
  pario::NewVolume wanted = options.wanted;
  wanted.name = argument(options, 1);
  if (wanted.hosts.empty() == wanted.addresses.empty()) {
    throw std::string("create needs either --hosts HOST,... or --server HOST:PORT");
  }
  if (wanted.hosts.empty()) {
    std::fputs(pario::describe(wanted).c_str(), stdout);
  } else {
    pario::create_named(wanted);
  }
}

std::uint32_t parse_count(const std::string& option, const std::string& text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value == 0 || value > 65'535) {
    throw option + " " + text + ": expected a number from 1 to 65535";
  }
  return value;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

void take_option(int letter, const char* value, Options& options) {
  pario::NewVolume& wanted = options.wanted;
  const std::map<int, std::string*> texts{{'v', &options.volume},   {'c', &wanted.stripe},
                                          {'d', &wanted.directory}, {'l', &wanted.launcher},
                                          {'z', &wanted.size},      {'k', &wanted.replicas},
                                          {'x', &wanted.expires},   {'t', &wanted.transport},
                                          {'w', &wanted.wait},      {'y', &wanted.layout}};
  if (const auto text = texts.find(letter); text != texts.end()) *text->second = value;
  if (letter == 's') wanted.addresses.emplace_back(value);
  if (letter == 'o') wanted.hosts = split_list(value);
  if (letter == 'n') wanted.servers = parse_count("--servers", value);
  if (letter == 'p') wanted.port = parse_count("--port", value);
  if (letter == 'f') options.force = true;
  if (letter == 'r') options.is_recursive = true;
}

// In "NAME:/path" the path names the volume. ":/path" is a path for all commands, as for cp.
void take_names(Options& options) {
  for (std::size_t i = 1; i < options.words.size(); ++i) {
    std::string& word = options.words[i];
    const std::size_t colon = word.find(':');
    if (colon == word.npos || word.find('/') < colon) continue;
    if (colon > 0) options.volume = word.substr(0, colon);
    word.erase(0, options.words[0] == "cp" ? colon : colon + 1);
  }
}

Options parse(int argc, char** argv) {
  constexpr std::array<option, 19> kOptions{{{"volume", required_argument, nullptr, 'v'},
                                             {"server", required_argument, nullptr, 's'},
                                             {"stripe", required_argument, nullptr, 'c'},
                                             {"hosts", required_argument, nullptr, 'o'},
                                             {"servers", required_argument, nullptr, 'n'},
                                             {"port", required_argument, nullptr, 'p'},
                                             {"directory", required_argument, nullptr, 'd'},
                                             {"launcher", required_argument, nullptr, 'l'},
                                             {"size", required_argument, nullptr, 'z'},
                                             {"replicas", required_argument, nullptr, 'k'},
                                             {"expires", required_argument, nullptr, 'x'},
                                             {"transport", required_argument, nullptr, 't'},
                                             {"wait", required_argument, nullptr, 'w'},
                                             {"layout", required_argument, nullptr, 'y'},
                                             {"force", no_argument, nullptr, 'f'},
                                             {"recursive", no_argument, nullptr, 'r'},
                                             {"help", no_argument, nullptr, 'h'},
                                             {"version", no_argument, nullptr, 'V'},
                                             {nullptr, 0, nullptr, 0}}};
  Options options;
  options.wanted.stripe = "1048576";
  for (int letter = 0; (letter = ::getopt_long(argc, argv, "r", kOptions.data(), nullptr)) != -1;) {
    if (letter == 'h' || letter == 'V') {
      std::fputs(letter == 'h' ? kUsage : "scored " SCORE_VERSION "\n", stdout);
      std::exit(0);
    }
    if (letter == '?') std::exit(kExitError);
    take_option(letter, optarg, options);
  }
  options.words.assign(argv + optind, argv + argc);
  if (!options.words.empty()) take_names(options);
  return options;
}

// Runs commands on named volumes as a whole. Returns false if the word is no such command.
bool run_named(const std::string& word, const Options& options) {
  const bool has_volume = !options.volume.empty() || std::getenv("PARIO_VOLUME") != nullptr;
  const bool has_path = options.words.size() > 1 && !options.words[1].empty();
  if (word == "start") {
    pario::start_named(argument(options, 1), options.wanted.launcher);
  } else if (word == "destroy") {
    pario::destroy_named(argument(options, 1), options.force);
  } else if (word == "ls" && !has_volume && options.words.size() == 1) {
    pario::list_named();
  } else if (word == "stat" && !options.volume.empty() && !has_path) {
    pario::print_named(options.volume);
  } else if (word == "rm" && !has_path && options.words.size() > 1) {
    throw std::string("rm removes files; to remove a volume: scio destroy NAME");
  } else {
    return false;
  }
  return true;
}

using Command = void (*)(pario_volume*, const Options&);

void run(const Options& options) {
  const std::map<std::string, Command> commands{{"ls", list},   {"stat", print_status},
                                                {"rm", remove}, {"df", print_space},
                                                {"cp", copy},   {"mkdir", make_directory}};
  const std::string word = options.words.empty() ? "" : options.words[0];
  if (word == "create") return create(options);
  if (run_named(word, options)) return;
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
  std::signal(SIGPIPE, SIG_IGN);  // a launcher that fails does not read the description
  try {
    run(parse(argc, argv));
  } catch (const std::string& message) {
    std::fprintf(stderr, "scio: %s\n", message.c_str());
    return kExitError;
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "scio: %s\n", error.what());
    return kExitError;
  }
  return std::fflush(stdout) == 0 ? 0 : kExitError;
}
