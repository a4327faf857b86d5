#include "pario/scio/named.hpp"

#include "pario/client/link.hpp"
#include "pario/client/pario.h"

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <pwd.h>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::uint32_t kMostPort = 65'535;

// Parses a number and the letter of a unit: "100G" as bytes, "7d" as seconds.
std::uint64_t parse_unit(const std::string& text, std::string_view units,
                         const std::array<std::uint64_t, 5>& factors, const std::string& option) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  std::uint64_t factor = 1;
  bool is_good = error == std::errc() && value > 0;
  if (is_good && stop != end) {
    const std::size_t unit = stop + 1 == end ? units.find(*stop) : units.npos;
    is_good = unit != units.npos;
    if (is_good) factor = factors[unit];
  }
  if (!is_good || value > static_cast<std::uint64_t>(INT64_MAX) / factor) {
    throw option + " " + text + ": expected a number with one of " + std::string(units);
  }
  return value * factor;
}

std::uint64_t parse_size(const std::string& text, const std::string& option) {
  return parse_unit(text, "KMGTP", {1ULL << 10, 1ULL << 20, 1ULL << 30, 1ULL << 40, 1ULL << 50},
                    option);
}

std::int64_t parse_expiry(const std::string& text) {
  const std::uint64_t value =
      parse_unit(text, "smhdw", {1, 60, 3'600, 86'400, 604'800}, "--expires");
  const bool is_time = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return static_cast<std::int64_t>(value) + (is_time ? 0 : std::time(nullptr));
}

std::string user_name() {
  const passwd* user = ::getpwuid(::geteuid());
  return user != nullptr ? user->pw_name : std::to_string(::geteuid());
}

std::string fresh_key() {
  std::random_device random;
  std::string key;
  for (int i = 0; i < 4; ++i) {
    std::array<char, 9> part{};
    std::snprintf(part.data(), part.size(), "%08x", random());
    key += part.data();
  }
  return key;
}

std::vector<std::string> addresses_of(const NewVolume& wanted) {
  if (wanted.hosts.empty()) return wanted.addresses;
  std::vector<std::string> addresses;
  const auto count =
      wanted.servers != 0 ? wanted.servers : static_cast<std::uint32_t>(wanted.hosts.size());
  if (count > kMaxServers || wanted.port + count - 1 > kMostPort) {
    throw std::string("--servers: too many for the ports from --port on");
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string& host = wanted.hosts[i % wanted.hosts.size()];
    addresses.push_back(host + ":" + std::to_string(wanted.port + i));
  }
  return addresses;
}

VolumeDescription read(const std::string& name) {
  VolumeDescription volume;
  std::string message;
  if (read_volume(name, volume, message) != 0) throw message;
  return volume;
}

void write_file(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) throw path + ": " + std::strerror(errno);
  const bool works = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                     ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (works) return;
  ::unlink(path.c_str());
  throw path + ": " + std::strerror(error);
}

bool is_this_host(const std::string& host) {
  std::array<char, HOST_NAME_MAX + 1> own{};
  return host == "localhost" || host == "127.0.0.1" || host == "::1" ||
         (::gethostname(own.data(), own.size() - 1) == 0 && host == own.data());
}

// Runs a command with `input` on its standard input; its output is shown. Returns its exit code, or
// 127.
int run_command(std::vector<std::string> words, const std::string& input) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return 127;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    ::dup2(ends[0], STDIN_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    std::fprintf(stderr, "scio: %s: %s\n", arguments[0], std::strerror(errno));
    ::_exit(127);
  }
  ::close(ends[0]);
  // A description is shorter than a pipe. A command that does not read it fails by itself.
  const bool is_given = child > 0 && ::write(ends[1], input.data(), input.size()) ==
                                         static_cast<ssize_t>(input.size());
  ::close(ends[1]);
  int status = 0;
  if (child <= 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 127;
  return is_given ? WEXITSTATUS(status) : 127;
}

std::string address_of(const VolumeDescription& volume, std::size_t index) {
  return volume.servers[index].host + ":" + volume.servers[index].port;
}

// Returns the servers that did not start, as indices in the volume.
std::vector<std::size_t> start_servers(const VolumeDescription& volume, const std::string& text,
                                       const std::string& launcher) {
  std::vector<std::size_t> failed;
  for (std::size_t index = 0; index < volume.servers.size(); ++index) {
    const std::string& host = volume.servers[index].host;
    const std::string directory =
        volume.directory + "/" + volume.name + "-" + std::to_string(index);
    std::vector<std::string> words{"scored-pario",        "--volume",    "-",       "--index",
                                   std::to_string(index), "--directory", directory, "--background"};
    if (!is_this_host(host)) words.insert(words.begin(), {launcher, host});
    if (run_command(words, text) != 0) failed.push_back(index);
  }
  return failed;
}

std::string addresses_of(const VolumeDescription& volume, const std::vector<std::size_t>& which) {
  std::string text;
  for (const std::size_t index : which) text += " " + address_of(volume, index);
  return text;
}

// Requests the server to exit and to remove its data. Returns an errno code; 0: it has agreed.
int destroy_server(const VolumeDescription& volume, std::size_t index) {
  Link link(volume, static_cast<std::uint32_t>(index), Transport::Tcp);
  if (const int error = link.open()) return error;
  Call call;
  call.request.op = Op::Destroy;
  call.request.id = kRootId;
  link.start(call);
  link.finish(call);
  return call.error;
}

// Removes the servers of a new volume that did start. Returns those that could not be removed.
std::vector<std::size_t> undo_servers(const VolumeDescription& volume,
                                      const std::vector<std::size_t>& failed) {
  std::vector<std::size_t> left;
  for (std::size_t index = 0; index < volume.servers.size(); ++index) {
    const bool has_started = std::ranges::find(failed, index) == failed.end();
    if (has_started && destroy_server(volume, index) != 0) left.push_back(index);
  }
  return left;
}

std::string text_of(const std::string& path) {
  std::string text(kMaxVolumeFileBytes, '\0');
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file) throw path + ": " + std::strerror(errno);
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

std::string time_text(std::int64_t seconds) {
  if (seconds == 0) return "never";
  return local_time(seconds) + (seconds <= std::time(nullptr) ? " (expired)" : "");
}

}  // namespace

std::string local_time(std::time_t time) {
  tm parts{};
  std::array<char, 32> text{};
  ::localtime_r(&time, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &parts);
  return text.data();
}

std::string describe(const NewVolume& wanted) {
  std::string text = "name " + wanted.name + "\nkey " + fresh_key() + "\n";
  text += "stripe " + std::to_string(parse_size(wanted.stripe, "--stripe")) + "\n";
  for (const std::string& address : addresses_of(wanted)) text += "server " + address + "\n";
  if (!wanted.replicas.empty()) text += "replicas " + wanted.replicas + "\n";
  if (!wanted.size.empty()) {
    text += "size " + std::to_string(parse_size(wanted.size, "--size")) + "\n";
  }
  if (!wanted.expires.empty()) {
    text += "expires " + std::to_string(parse_expiry(wanted.expires)) + "\n";
  }
  if (!wanted.transport.empty()) text += "transport " + wanted.transport + "\n";
  if (!wanted.layout.empty()) text += "layout " + wanted.layout + "\n";
  if (!wanted.wait.empty()) text += "wait " + wanted.wait + "\n";
  if (!wanted.directory.empty()) text += "directory " + wanted.directory + "\n";
  text += "owner " + user_name() + "\n";
  VolumeDescription volume;
  std::string message;
  if (!parse_volume(text, volume, message)) throw "create: " + message;
  return text;
}

void create_named(const NewVolume& wanted) {
  if (wanted.size.empty()) throw std::string("create with --hosts needs --size, such as 100G");
  if (wanted.directory.empty()) {
    throw std::string("create with --hosts needs --directory, which exists on the hosts");
  }
  const std::string text = describe(wanted);
  const std::string folder = volume_folder();
  if (folder.empty()) throw std::string("no directory for volumes: set SCORE_VOLUMES or HOME");
  for (std::size_t slash = folder.find('/', 1); slash != folder.npos;
       slash = folder.find('/', slash + 1)) {
    ::mkdir(folder.substr(0, slash).c_str(), 0700);
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw folder + ": " + std::strerror(errno);
  }
  write_file(folder + "/" + wanted.name, text);
  VolumeDescription volume;
  std::string message;
  static_cast<void>(parse_volume(text, volume, message));
  const auto failed = start_servers(volume, text, wanted.launcher);
  if (failed.empty()) return;
  const auto left = undo_servers(volume, failed);
  const std::string what =
      "cannot create the volume: these servers did not start:" + addresses_of(volume, failed);
  if (!left.empty()) {
    throw what + "; these run and could not be removed:" + addresses_of(volume, left) +
        " (scio destroy --force " + wanted.name + " forgets the volume)";
  }
  ::unlink((folder + "/" + wanted.name).c_str());
  throw what;
}

void start_named(const std::string& name, const std::string& launcher) {
  const VolumeDescription volume = read(name);
  if (volume.directory.empty()) {
    throw name + ": its servers are started by hand; see scored-pario(8)";
  }
  const auto failed = start_servers(volume, text_of(volume_path(name)), launcher);
  if (failed.empty()) return;
  throw "not all servers were started:" + addresses_of(volume, failed) + "; try scio start " +
      volume.name;
}

void list_named() {
  const std::string folder = volume_folder();
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), &::closedir);
  std::vector<std::string> names;
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  std::printf("%-24s %8s %8s %16s %-12s %s\n", "VOLUME", "SERVERS", "REPLICAS", "SIZE", "OWNER",
              "EXPIRES");
  for (const std::string& name : names) {
    VolumeDescription volume;
    std::string message;
    if (read_volume(folder + "/" + name, volume, message) != 0) {
      std::fprintf(stderr, "scio: %s\n", message.c_str());
      continue;
    }
    std::printf("%-24s %8zu %8u %16" PRIu64 " %-12s %s\n", name.c_str(), volume.servers.size(),
                volume.replicas, volume.size, volume.owner.c_str(),
                time_text(volume.expires_s).c_str());
  }
}

void print_named(const std::string& name) {
  const VolumeDescription volume = read(name);
  std::printf("volume %s\nowner %s\nservers %zu\nreplicas %u\nstripe %" PRIu64 "\nsize %" PRIu64
              "\nexpires %s\ntransport %s\n",
              volume.name.c_str(), volume.owner.c_str(), volume.servers.size(), volume.replicas,
              volume.stripe, volume.size, time_text(volume.expires_s).c_str(),
              volume.transport == Transport::Nodes ? "pm" : "tcp");
  for (const ServerAddress& server : volume.servers) {
    std::printf("server %s:%s\n", server.host.c_str(), server.port.c_str());
  }
}

void destroy_named(const std::string& name, bool force) {
  const std::string path = volume_path(name);
  static_cast<void>(read(name));
  pario_volume* volume = nullptr;
  std::array<char, 512> message{};
  int error = pario_open_volume(path.c_str(), &volume, message.data(), message.size());
  if (error == 0) error = pario_destroy_volume(volume);
  pario_close_volume(volume);
  if (error != 0 && !force) {
    throw name + ": " + (message[0] != '\0' ? message.data() : std::strerror(-error)) +
        "; its data may be left there: --force forgets the volume";
  }
  if (::unlink(path.c_str()) != 0) throw path + ": " + std::strerror(errno);
}

}  // namespace score::pario
