#include "scored/head/streams/volume_collector.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>

namespace score::head {

namespace {

// The address becomes a line of a file, so it is checked strictly.
bool is_address(const std::string& server) {
  const std::size_t colon = server.find(':');
  if (colon == server.npos || colon >= INET_ADDRSTRLEN) return false;
  const auto port = parse_number<std::uint16_t>(std::string_view(server).substr(colon + 1));
  in_addr address{};
  return port && *port > 0 && inet_pton(AF_INET, server.substr(0, colon).c_str(), &address) == 1;
}

}  // namespace

Result<std::optional<VolumeCollector::Answer>> VolumeCollector::ready(AttemptId attempt,
                                                                      std::size_t count,
                                                                      std::size_t index,
                                                                      const std::string& server) {
  if (!is_address(server) || index >= count) {
    return fail(Errc::Malformed, "'{}' is not the address of a server",
                escape_terminal(server, 80));
  }
  Volume& volume = volumes_[attempt];
  if (volume.servers.size() != count) volume = {std::vector<std::string>(count), count};
  const bool was_whole = volume.missing == 0;
  const bool is_repeated = volume.servers[index] == server;
  if (volume.servers[index].empty()) --volume.missing;
  volume.servers[index] = server;
  if (volume.missing > 0) return std::nullopt;
  Answer answer{volume.servers, {}};
  if (was_whole && is_repeated) answer.only_for = index;
  return answer;
}

}  // namespace score::head
