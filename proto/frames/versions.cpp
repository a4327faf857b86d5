// This file is tested by hello_test.cpp.
#include "proto/frames/hello.hpp"

namespace score::proto {

VersionRange spoken_versions() {
  return {.lowest = 1, .highest = 1};
}

}  // namespace score::proto
