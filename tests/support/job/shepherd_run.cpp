// This development tool runs a program under shepherds that play nodes of one machine, without
// daemons.
//
//   shepherd_run NODES TASKS_PER_NODE[:ROOM] PROGRAM [ARGUMENT ...]
//
// ROOM is how many of all tasks are reserved for those that the program starts.
// The tool prints the tasks' output, and on stderr how long each phase took.

#include "base/exit_codes.hpp"
#include "tests/support/job/test_node.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

extern "C" char** environ;

int run(int argc, char** argv) {
  using namespace score::shepherd::test;  // NOLINT: the tool only uses these names
  char* room = nullptr;
  const auto each = static_cast<std::uint32_t>(std::strtoul(argv[2], &room, 10));
  const std::vector<std::uint32_t> tasks(std::strtoul(argv[1], nullptr, 10), each);
  auto spec = spec_of({argv + 3, argv + argc});
  if (*room == ':') {
    spec.set_spawn(static_cast<std::uint32_t>(std::strtoul(room + 1, nullptr, 10)));
  }
  spec.clear_env();
  for (char** variable = environ; *variable != nullptr; ++variable) spec.add_env(*variable);
  TestCluster cluster(tasks);
  const bool good = cluster.run(spec, std::chrono::minutes(5));
  std::fputs(cluster.output().c_str(), stdout);
  std::fputs(cluster.errors().c_str(), stderr);
  const auto ms = [](std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / 1e6;
  };
  std::fprintf(stderr, "prepare %.1f ms, start %.1f ms, run %.1f ms, %zu fences, %s\n",
               ms(cluster.prepare_time), ms(cluster.start_time), ms(cluster.run_time),
               cluster.fences_done, good ? "done" : "not done");
  int code = good ? score::kExitOk : score::kExitError;
  for (const auto& node : cluster.nodes) {
    if (node->abort) {
      std::fprintf(stderr, "abort: rank %u, code %d: %s\n", node->abort->rank(),
                   node->abort->code(), node->abort->message().c_str());
    }
    if (node->refused) std::fprintf(stderr, "refused: %s\n", node->refused->reason().c_str());
    for (const auto& exit : node->ended)
      code = std::max(code, exit.signal() != 0 ? 128 + exit.signal() : exit.code());
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: shepherd_run NODES TASKS_PER_NODE[:ROOM] PROGRAM [ARGUMENT ...]\n", stderr);
    return score::kExitError;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shepherd_run: %s\n", error.what());
    return score::kExitError;
  }
}
