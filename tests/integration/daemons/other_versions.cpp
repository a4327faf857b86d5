// In the place of proto/frames/versions.cpp, for programs that stand for another release.
#include "proto/frames/hello.hpp"

namespace score::proto {

VersionRange spoken_versions() {
  return {.lowest = LOWEST_VERSION, .highest = HIGHEST_VERSION};
}

}  // namespace score::proto
