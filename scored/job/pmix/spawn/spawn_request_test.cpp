#include "scored/job/pmix/spawn/spawn_request.hpp"

#include "base/limits.hpp"

#include <gtest/gtest.h>
#include <pmix.h>

#include <array>
#include <vector>

namespace score::pmix {
namespace {

pmix_app_t app_of(const char* command, int tasks) {
  pmix_app_t app;
  PMIX_APP_CONSTRUCT(&app);
  app.cmd = const_cast<char*>(command);
  app.maxprocs = tasks;
  return app;
}

TEST(SpawnRequest, ReadsCommandArgumentsVariablesAndDirectory) {
  auto app = app_of("./child", 3);
  std::array<char*, 3> words{const_cast<char*>("child"), const_cast<char*>("-x"), nullptr};
  std::array<char*, 3> variables{const_cast<char*>("OMPI_PARENT_PORT=a;b=c"),
                                 const_cast<char*>("nonsense"), nullptr};
  app.argv = words.data();
  app.env = variables.data();
  app.cwd = const_cast<char*>("/tmp");
  const auto programs = programs_of({}, {&app, 1});
  ASSERT_TRUE(programs);
  ASSERT_EQ(programs->size(), 1U);
  const auto& program = programs->front();
  EXPECT_EQ(program.tasks(), 3U);
  EXPECT_EQ(program.directory(), "/tmp");
  ASSERT_EQ(program.argv_size(), 2);
  EXPECT_EQ(program.argv(0), "./child");
  EXPECT_EQ(program.argv(1), "-x");
  ASSERT_EQ(program.env_size(), 1);
  EXPECT_EQ(program.env(0), "OMPI_PARENT_PORT=a;b=c");
}

TEST(SpawnRequest, HostileCountsAreRefused) {
  EXPECT_FALSE(programs_of({}, {}));
  for (const int tasks : {0, -1, 1 << 21, -2147483647}) {
    const auto app = app_of("a", tasks);
    EXPECT_FALSE(programs_of({}, {&app, 1})) << tasks;
  }
  for (const char* command : {static_cast<const char*>(nullptr), ""}) {
    const auto app = app_of(command, 1);
    EXPECT_FALSE(programs_of({}, {&app, 1}));
  }
  auto app = app_of("a", 1);
  std::vector<char*> words(base::limits::kMaxSpawnWords + 1, const_cast<char*>("x"));
  words.push_back(nullptr);
  app.argv = words.data();
  EXPECT_FALSE(programs_of({}, {&app, 1}));
}

}  // namespace
}  // namespace score::pmix
