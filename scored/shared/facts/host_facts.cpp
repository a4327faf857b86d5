#include "scored/shared/facts/host_facts.hpp"

#include "base/time.hpp"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace score::facts {

std::string_view release() {
  return SCORE_VERSION;
}

wire::HostFacts of_this_host() {
  wire::HostFacts facts;
  facts.set_release(SCORE_VERSION);
  facts.set_wall_ns(wall_now().time_since_epoch().count());
  facts.set_user(::geteuid());
  return facts;
}

void add_file(wire::HostFacts& facts, wire::FileFact::Role role, const std::string& path) {
  wire::FileFact& file = *facts.add_files();
  file.set_role(role);
  file.set_path(path);

  struct stat info {};

  if (::stat(path.c_str(), &info) != 0) {
    file.set_problem(std::strerror(errno));
    return;
  }
  file.set_mode(info.st_mode);
  file.set_owner(info.st_uid);
}

}  // namespace score::facts
