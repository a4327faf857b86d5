#pragma once
// Publishes the figure that a test has measured for a promise of docs/reference/survival.md.

#include <cstdio>
#include <cstdlib>
#include <string>

namespace score::test {

// Prints the figure, a text with its unit ("12 ms", "0 lost of 200"), and appends it to the file
// that SCORE_FIGURES names. `promise` is the id of the row, such as "F05". Neither may contain a
// quote or a backslash. The test itself checks the bound.
inline void figure(const std::string& promise, const std::string& value) {
  std::printf("%s: %s\n", promise.c_str(), value.c_str());
  const char* path = std::getenv("SCORE_FIGURES");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "{\"promise\": \"%s\", \"figure\": \"%s\"}\n", promise.c_str(), value.c_str());
  std::fclose(file);
}

}  // namespace score::test
