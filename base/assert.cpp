// Its functions are tested by result_test.cpp.

#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace score::inline base {

void assert_failed(const char* condition, std::string_view context,
                   const std::source_location& where) {
  // journald reads <2> as "critical". This function does not use the logger, because the logger may
  // be what is broken.
  std::fprintf(stderr, "<2>assertion failed: %s at=%s:%u%s%.*s\n", condition, where.file_name(),
               where.line(), context.empty() ? "" : " ", static_cast<int>(context.size()),
               context.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace score::inline base
