// Tests which files libfabric reads while it initialises itself with this provider. That happens
// once per process, so each case has a process of its own.
#include "pmlib/fi/kernel_symbols.hpp"

#include <gtest/gtest.h>
#include <rdma/fabric.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>

namespace {

int opened_symbols = 0;

}  // namespace

// The dynamic linker finds this function before that of the C library.
extern "C" std::FILE* fopen(const char* path, const char* mode) {
  using Open = std::FILE* (*)(const char*, const char*);
  static const auto real = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "fopen"));
  if (std::strcmp(path, "/proc/kallsyms") == 0) ++opened_symbols;
  return real(path, mode);
}

namespace score::pm::fi {
namespace {

constexpr int kNoProvider = 100;

// Ends the process with the number of times that it has opened the symbol table.
[[noreturn]] void start_with(const char* providers) {
  if (providers != nullptr) {
    setenv("FI_PROVIDER", providers, 1);
  } else {
    unsetenv("FI_PROVIDER");
  }
  fi_info* const hints = fi_dupinfo(nullptr);
  hints->fabric_attr->prov_name = strdup("pm");
  fi_info* found = nullptr;
  const int status = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &found);
  fi_freeinfo(hints);
  if (status != 0) std::exit(kNoProvider);
  fi_freeinfo(found);
  std::exit(opened_symbols);
}

bool has_opened(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) > 0 && WEXITSTATUS(status) < kNoProvider;
}

class ProviderStart : public testing::Test {
 protected:
  ProviderStart() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ProviderStart, SkipsKernelSymbolsIfVerbsIsExcluded) {
  if (!reads_symbols_in_vain(fi_version(), "pm")) GTEST_SKIP() << "this libfabric does not";
  EXPECT_EXIT(start_with("pm"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(start_with("pm,tcp"), testing::ExitedWithCode(0), "");
}

TEST_F(ProviderStart, VerbsReadsKernelSymbols) {
  if (!reads_symbols_in_vain(fi_version(), "pm")) GTEST_SKIP() << "this libfabric does not";
  EXPECT_EXIT(start_with(nullptr), has_opened, "");
  EXPECT_EXIT(start_with("pm,verbs"), has_opened, "");
}

TEST(KernelSymbols, AreReadInVainIfVerbsIsExcluded) {
  constexpr std::uint32_t kOld = FI_VERSION(1, 17);
  for (const char* providers : {"pm", "pm,tcp", "tcp;ofi_rxm", "pm,shm"}) {
    EXPECT_TRUE(reads_symbols_in_vain(kOld, providers)) << providers;
    EXPECT_FALSE(reads_symbols_in_vain(FI_VERSION(1, 19), providers)) << "when verbs is used";
    EXPECT_FALSE(reads_symbols_in_vain(FI_VERSION(2, 5), providers)) << providers;
  }
  for (const char* providers : {"verbs", "pm,verbs", "pm,Verbs;ofi_rxm", "^tcp", "^verbs", ""}) {
    EXPECT_FALSE(reads_symbols_in_vain(kOld, providers)) << providers;
  }
  EXPECT_FALSE(reads_symbols_in_vain(kOld, nullptr));
}

[[noreturn]] void start_hidden(bool is_shown_again) {
  const void* const library = dlsym(RTLD_DEFAULT, "fi_getinfo");
  hide_kernel_symbols(library);
  hide_kernel_symbols(library);  // a second call changes nothing
  if (is_shown_again) show_kernel_symbols();
  start_with(nullptr);
}

TEST_F(ProviderStart, HiddenSymbolsCanBeShownAgain) {
  if (!reads_symbols_in_vain(fi_version(), "pm")) GTEST_SKIP() << "this libfabric does not";
  EXPECT_EXIT(start_hidden(false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(start_hidden(true), has_opened, "");
}

[[noreturn]] void start_hidden_from(const void* caller) {
  hide_kernel_symbols(caller);
  start_with(nullptr);
}

TEST_F(ProviderStart, CallerOutsideLibrariesHidesNothing) {
  if (!reads_symbols_in_vain(fi_version(), "pm")) GTEST_SKIP() << "this libfabric does not";
  const int on_stack = 0;
  EXPECT_EXIT(start_hidden_from(&on_stack), has_opened, "");
  EXPECT_EXIT(start_hidden_from(nullptr), has_opened, "");
}

}  // namespace
}  // namespace score::pm::fi
