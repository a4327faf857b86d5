#include "pario/core/volume_file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::pario {
namespace {

template <typename T>
bool parse_whole(std::string_view text, T& value, int base = 10) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end && !text.empty();
}

bool parse_key(std::string_view text, Key& key) {
  if (text.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    unsigned value = 0;
    if (!parse_whole(text.substr(2 * i, 2), value, 16)) return false;
    key[i] = static_cast<char>(value);
  }
  return true;
}

bool is_volume_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, is_allowed);
}

bool parse_server(std::string_view text, ServerAddress& address) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  if (colon == text.npos || colon == 0 || !parse_whole(text.substr(colon + 1), port) || port == 0) {
    return false;
  }
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  address = {std::string(host), std::to_string(port)};
  return true;
}

// Returns an empty string, or a description of the error.
std::string take_line(std::string_view word, std::string_view value, VolumeDescription& volume,
                      bool& has_key) {
  if (word == "name") {
    volume.name = value;
    return is_volume_name(value) ? "" : "a name has 1 to 64 letters, digits and . _ -";
  }
  if (word == "key") {
    has_key = true;
    return parse_key(value, volume.key) ? "" : "a key has 32 hexadecimal digits";
  }
  if (word == "stripe") {
    const bool is_number = parse_whole(value, volume.stripe);
    return is_number && is_valid(Striping{1, 0, volume.stripe})
               ? ""
               : "a stripe has 4096 to 1073741824 bytes and is a power of two";
  }
  if (word == "replicas") {
    const bool is_number = parse_whole(value, volume.replicas);
    return is_number && (volume.replicas == 1 || volume.replicas == 2) ? "" : "replicas: 1 or 2";
  }
  if (word == "size") {
    const bool is_number = parse_whole(value, volume.size);
    return is_number && volume.size > 0 && volume.size <= kMaxOffset ? "" : "size: bytes, not 0";
  }
  if (word == "expires") {
    const bool is_number = parse_whole(value, volume.expires_s);
    return is_number && volume.expires_s > 0 ? "" : "expires: seconds since 1970";
  }
  if (word == "owner") {
    volume.owner = value;
    return is_volume_name(value) ? "" : "an owner has 1 to 64 letters, digits and . _ -";
  }
  if (word == "directory") {
    volume.directory = value;
    return value.starts_with('/') ? "" : "a directory begins with /";
  }
  if (word == "transport") {
    volume.transport = value == "pm" ? Transport::Nodes : Transport::Usual;
    return value == "pm" || value == "tcp" ? "" : "transport: pm or tcp";
  }
  if (word == "layout") {
    volume.is_local = value == "local";
    return value == "local" || value == "striped" ? "" : "layout: local or striped";
  }
  if (word == "wait") {
    const bool is_number = parse_whole(value, volume.wait_s);
    return is_number && volume.wait_s > 0 && volume.wait_s <= 3'600 ? "" : "wait: 1 to 3600 s";
  }
  if (word != "server") {
    return "expected name, key, stripe, server, replicas, size, expires, owner, directory, "
           "transport, layout or wait";
  }
  ServerAddress address;
  if (!parse_server(value, address)) return "expected HOST:PORT";
  volume.servers.push_back(std::move(address));
  return volume.servers.size() <= kMaxServers ? "" : "more than 4096 servers";
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

bool parse_volume(std::string_view text, VolumeDescription& volume, std::string& message) {
  volume = {};
  bool has_key = false;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
    std::string fault =
        take_line(line.substr(0, blank), trimmed(line.substr(blank)), volume, has_key);
    if (!fault.empty()) {
      message = "line " + std::to_string(number) + ": " + fault;
      return false;
    }
  }
  if (volume.name.empty()) message = "no line 'name'";
  if (!has_key) message = "no line 'key'";
  if (volume.servers.empty()) message = "no line 'server'";
  if (volume.replicas > 1 && volume.servers.size() == 1) message = "replicas 2 needs two servers";
  return has_key && !volume.name.empty() && !volume.servers.empty() &&
         volume.replicas <= volume.servers.size();
}

std::uint64_t capacity_of(const VolumeDescription& volume) {
  const std::uint64_t servers = volume.servers.size();
  return volume.size / servers + (volume.size % servers != 0 ? 1 : 0);
}

std::string volume_folder() {
  if (const char* folder = std::getenv("SCORE_VOLUMES")) return folder;
  if (const char* data = std::getenv("XDG_DATA_HOME")) return std::string(data) + "/scored/volumes";
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.local/share/scored/volumes";
}

std::string volume_path(const std::string& name) {
  const std::string folder = volume_folder();
  if (!is_volume_name(name) || folder.empty() || ::access(name.c_str(), F_OK) == 0) return name;
  return folder + "/" + name;
}

namespace {

// Reads the whole file, at most one byte more than is permitted.
ssize_t read_text(int fd, std::string& text) {
  text.assign(kMaxVolumeFileBytes + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(fd, text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return static_cast<ssize_t>(length);
}

int parse_text(const std::string& path, const std::string& text, VolumeDescription& volume,
               std::string& message) {
  if (text.size() <= kMaxVolumeFileBytes && parse_volume(text, volume, message)) return 0;
  message = path + ": " + (message.empty() ? "larger than 1 MB" : message);
  return EINVAL;
}

}  // namespace

int read_volume(const std::string& name, VolumeDescription& volume, std::string& message) {
  std::string text;
  if (name == "-") {
    read_text(STDIN_FILENO, text);
    return parse_text("standard input", text, volume, message);
  }
  const std::string path = volume_path(name);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);

  struct stat status {};

  if (fd < 0 || ::fstat(fd, &status) != 0) {
    const int error = errno;
    message = path + ": " + std::strerror(error);
    if (fd >= 0) ::close(fd);
    return error;
  }
  int error = 0;
  if (!S_ISREG(status.st_mode)) {
    error = EINVAL;
    message = path + ": not a regular file";
  } else if ((status.st_mode & 077) != 0) {
    error = EACCES;
    message = path + ": has a key, but its group or others have access: chmod 600";
  } else {
    read_text(fd, text);
    error = parse_text(path, text, volume, message);
  }
  ::close(fd);
  return error;
}

}  // namespace score::pario
