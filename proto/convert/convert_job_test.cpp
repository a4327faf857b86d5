#include "base/limits.hpp"
#include "proto/convert/convert.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <sys/resource.h>

namespace score::proto {
namespace {

namespace limits = base::limits;

base::ResourceRequest some_request() {
  base::ResourceRequest request;
  request.nodes = 3;
  request.tasks = 5;
  request.tasks_per_node = 2;
  request.own_cores = true;
  request.no_fill = true;
  request.no_park = true;
  request.equal_share = true;
  request.switches = 2;
  request.switches_wait = 5s;
  request.cpus_per_task = 4;
  request.memory_per_node = base::Bytes(1U << 30U);
  request.only_nodes = {"node00", "node01", "node02"};
  request.except_nodes = {"node07"};
  request.queue = base::Queue::High;
  request.weight = 7;
  request.priority = -3;
  request.held = true;
  request.scheduled_limit = 90s;
  request.wall_limit = 3h;
  request.overlay = true;
  request.kill_deadlock = true;
  request.requeue = base::Requeue::No;
  request.most_nodes = 5;
  request.account = "physics";
  request.reservation = "course";
  request.features = {"fast", "a|b"};
  request.generic = {{"gpu", 2, base::Bytes(1ULL << 33U)}, {"licence", 1}};
  request.scratch = base::Bytes(1ULL << 40U);
  request.partition = "short";
  request.licenses = {{"matlab", 2}, {"ansys", 1}};
  return request;
}

wire::LaunchSpec some_spec() {
  wire::LaunchSpec spec;
  auto* program = spec.add_programs();
  program->add_argv("./a.out");
  program->add_argv("");
  spec.add_env("PATH=/bin");
  spec.add_env("EMPTY=");
  spec.add_env("ODD=a=b\n\xff");
  spec.set_directory("/home/user");
  spec.set_umask(022);
  spec.set_stdin_rank(-1);
  spec.set_stdout_path("%j.out");
  spec.set_mpi(wire::LaunchSpec::PMI1);
  spec.set_job_name("ring");
  spec.set_nodelist("node00");
  auto* limit = spec.add_limits();
  limit->set_resource(RLIMIT_NOFILE);
  limit->set_soft(1024);
  limit->set_hard(4096);
  return spec;
}

TEST(ConvertRequest, ZeroMeansTheDefault) {
  auto message = to_wire(some_request());
  message.set_cpus_per_task(0);
  message.set_weight(0);
  const auto request = from_wire(message);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->cpus_per_task, base::ResourceRequest().cpus_per_task);
  EXPECT_EQ(request->weight, base::ResourceRequest().weight);
}

struct BadRequest {
  const char* field;
  std::function<void(wire::ResourceRequest&)> spoil;
};

TEST(ConvertRequest, NamesTheInvalidField) {
  const BadRequest cases[] = {
      {"nodes", [](auto& m) { m.set_nodes(limits::kMaxNodes + 1); }},
      {"tasks", [](auto& m) { m.set_tasks(limits::kMaxTasksPerJob + 1); }},
      {"tasks_per_node", [](auto& m) { m.set_tasks_per_node(0xffffffff); }},
      {"cpus_per_task", [](auto& m) { m.set_cpus_per_task(limits::kMaxCoresPerNode + 1); }},
      {"only_nodes", [](auto& m) { m.add_only_nodes("../etc"); }},
      {"only_nodes", [](auto& m) { m.add_only_nodes(""); }},
      {"only_nodes",
       [](auto& m) {
         for (std::size_t i = 0; i < limits::kMaxNodes; ++i) m.add_only_nodes("n");
       }},
      {"except_nodes", [](auto& m) { m.add_except_nodes("a b"); }},
      {"queue", [](auto& m) { m.set_queue(4); }},
      {"weight", [](auto& m) { m.set_weight(limits::kMaxWeight + 1); }},
      {"requeue", [](auto& m) { m.set_requeue(3); }},
      {"most_nodes", [](auto& m) { m.set_most_nodes(limits::kMaxNodes + 1); }},
      {"scheduled_limit_ns", [](auto& m) { m.set_scheduled_limit_ns(-1); }},
      {"account", [](auto& m) { m.set_account("a b"); }},
      {"reservation", [](auto& m) { m.set_reservation("../x"); }},
      {"features", [](auto& m) { m.add_features("a|"); }},
      {"features",
       [](auto& m) {
         for (std::size_t i = 0; i < limits::kMaxFeatures; ++i) m.add_features("f");
       }},
      {"generic.name", [](auto& m) { m.add_generic()->set_count(1); }},
      {"generic.count", [](auto& m) { m.add_generic()->set_name("mic"); }},
      {"generic.name", [](auto& m) { *m.add_generic() = m.generic(0); }},
      {"generic.count", [](auto& m) { m.mutable_generic(0)->set_count(1U << 30U); }},
      {"wall_limit_ns", [](auto& m) { m.set_wall_limit_ns(INT64_MIN); }},
  };
  for (const auto& [field, spoil] : cases) {
    auto message = to_wire(some_request());
    spoil(message);
    const auto request = from_wire(message);
    ASSERT_FALSE(request.has_value()) << field;
    EXPECT_TRUE(request.error().is(WireErrc::BadMessage));
    EXPECT_TRUE(request.error().context().starts_with(fmt::format("ResourceRequest.{} ", field)))
        << request.error().message();
  }
}

TEST(ConvertRequest, EscapesQuotedText) {
  auto message = to_wire(some_request());
  message.add_only_nodes("\x1b[2Jnode");
  EXPECT_EQ(from_wire(message).error().context().find('\x1b'), std::string::npos);
}

TEST(LaunchSpec, AcceptsSoundSpecification) {
  const auto checked = check_launch_spec(some_spec());
  EXPECT_TRUE(checked.has_value()) << checked.error().message();
}

struct BadSpec {
  const char* field;
  std::function<void(wire::LaunchSpec&)> spoil;
};

TEST(LaunchSpec, NamesTheInvalidField) {
  const std::string nul("a\0b", 3);
  const BadSpec cases[] = {
      {"programs", [](auto& s) { s.clear_programs(); }},
      {"tasks", [](auto& s) { s.add_programs()->add_argv("b"); }},
      {"directory", [](auto& s) { s.mutable_programs(0)->set_directory("here"); }},
      {"env", [](auto& s) { s.mutable_programs(0)->add_env("NOEQUALS"); }},
      {"argv", [](auto& s) { s.mutable_programs(0)->clear_argv(); }},
      {"argv", [](auto& s) { s.mutable_programs(0)->set_argv(0, ""); }},
      {"argv", [&nul](auto& s) { s.mutable_programs(0)->add_argv(nul); }},
      {"argv",
       [](auto& s) { s.mutable_programs(0)->add_argv(std::string(limits::kMaxExecBytes, 'x')); }},
      {"argv",
       [](auto& s) {
         auto& program = *s.mutable_programs(0);
         constexpr auto kMost = limits::kMaxExecBytes / limits::kExecBytesPerString;
         for (std::size_t i = 0; i < kMost; ++i) program.add_argv("");
       }},
      {"env", [](auto& s) { s.add_env("NOEQUALS"); }},
      {"env", [](auto& s) { s.add_env("=value"); }},
      {"env", [&nul](auto& s) { s.add_env("A=" + nul); }},
      {"env",
       [](auto& s) {
         for (int i = 0; i < 3; ++i) {
           s.add_env("A=" + std::string(limits::kMaxExecBytes / 2, 'x'));
         }
       }},
      {"directory", [](auto& s) { s.set_directory("relative"); }},
      {"directory", [](auto& s) { s.set_directory(""); }},
      {"directory", [](auto& s) { s.set_directory("/" + std::string(5000, 'd')); }},
      {"directory", [&nul](auto& s) { s.set_directory("/" + nul); }},
      {"stdin_path", [](auto& s) { s.set_stdin_path(std::string(5000, 'd')); }},
      {"stdout_path", [&nul](auto& s) { s.set_stdout_path(nul); }},
      {"stderr_path", [&nul](auto& s) { s.set_stderr_path(nul); }},
      {"umask", [](auto& s) { s.set_umask(01000); }},
      {"stdin_rank", [](auto& s) { s.set_stdin_rank(-3); }},
      {"stdin_rank", [](auto& s) { s.set_stdin_rank(limits::kMaxTasksPerJob); }},
      {"terminal_rows", [](auto& s) { s.set_terminal_rows(65536); }},
      {"terminal_columns", [](auto& s) { s.set_terminal_columns(1U << 31U); }},
      {"mpi", [](auto& s) { s.set_mpi(static_cast<wire::LaunchSpec::Mpi>(9)); }},
      {"net", [](auto& s) { s.set_net(static_cast<wire::LaunchSpec::Net>(2)); }},
      {"cpu_bind", [](auto& s) { s.set_cpu_bind(static_cast<wire::LaunchSpec::Bind>(-1)); }},
      {"job_name", [](auto& s) { s.set_job_name(std::string(257, 'n')); }},
      {"nodelist", [](auto& s) { s.set_nodelist("-x"); }},
      {"cpus_per_task", [](auto& s) { s.set_cpus_per_task(limits::kMaxCoresPerNode + 1); }},
      {"limits.resource", [](auto& s) { s.add_limits()->set_resource(RLIM_NLIMITS); }},
      {"limits", [](auto& s) { s.add_limits()->set_soft(1); }},
      {"limits",
       [](auto& s) {
         for (int i = 0; i < 17; ++i) s.add_limits();
       }},
  };
  for (const auto& [field, spoil] : cases) {
    auto spec = some_spec();
    spoil(spec);
    const auto checked = check_launch_spec(spec);
    ASSERT_FALSE(checked.has_value()) << field;
    EXPECT_TRUE(checked.error().context().starts_with(fmt::format("LaunchSpec.{} ", field)))
        << checked.error().message();
  }
}

TEST(LaunchSpec, FileNamesWithUnknownLettersAreRejected) {
  const BadSpec cases[] = {
      {"stdin_path", [](auto& s) { s.set_stdin_path("in.%q"); }},
      {"stdout_path", [](auto& s) { s.set_stdout_path("out.%"); }},
      {"stderr_path", [](auto& s) { s.set_stderr_path("%y"); }},
  };
  for (const auto& [field, spoil] : cases) {
    auto spec = some_spec();
    spoil(spec);
    const auto checked = check_launch_spec(spec);
    ASSERT_FALSE(checked.has_value()) << field;
    EXPECT_TRUE(checked.error().context().starts_with(fmt::format("LaunchSpec.{} ", field)))
        << checked.error().message();
  }
}

TEST(LaunchSpec, ScriptMustNameItsInterpreter) {
  auto spec = some_spec();
  while (spec.programs_size() > 1) spec.mutable_programs()->RemoveLast();
  spec.set_script("#!/bin/sh\necho\n");
  EXPECT_TRUE(check_launch_spec(spec).has_value());
  for (const std::string& bad : {std::string("echo"), std::string("#!/bin/sh\0", 10),
                                 "#!" + std::string(limits::kMaxScriptBytes, 'x')}) {
    spec.set_script(bad);
    EXPECT_FALSE(check_launch_spec(spec).has_value());
  }
}

TEST(ConvertRequest, StepHasNoCoresOfItsOwn) {
  base::ResourceRequest step;
  step.inside = base::JobId(7);
  EXPECT_TRUE(from_wire(to_wire(step)).has_value());
  auto nested = to_wire(step);
  nested.set_allocation(true);
  EXPECT_FALSE(from_wire(nested).has_value());
  auto overflowing = to_wire(step);
  overflowing.set_inside(UINT64_MAX);
  EXPECT_FALSE(from_wire(overflowing).has_value());
}

// Endlessly nested groups in an unknown field must not overflow the stack: the parser stops before
// that.
TEST(Parse, RefusesDeepNesting) {
  wire::Failed message;
  EXPECT_FALSE(parse_into(message, std::string(100'000, '\x7b')));
  EXPECT_FALSE(parse_into(message, std::string(40, '\x7b') + std::string(40, '\x7c')));
  EXPECT_TRUE(parse_into(message, std::string(20, '\x7b') + std::string(20, '\x7c')));
}

TEST(Parse, RejectsFrameOfDifferentType) {
  const InFrame frame{FrameType::Submit, ""};
  EXPECT_TRUE(parse<wire::Submit>(frame).has_value());
  EXPECT_EQ(parse<wire::Attach>(frame).error().context(), "Submit where Attach is due");
}

TEST(ConvertRequestId, IsSixteenBytesHighHalfFirst) {
  const base::RequestId id{0x0102030405060708, 0x090a0b0c0d0e0f10};
  EXPECT_EQ(to_wire(id), "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10");
  EXPECT_EQ(*request_id_from_wire(to_wire(id)), id);
  EXPECT_FALSE(request_id_from_wire("short").has_value());
  EXPECT_FALSE(request_id_from_wire(std::string(17, 'x')).has_value());
  EXPECT_FALSE(request_id_from_wire(std::string(16, '\0')).has_value());
}

TEST(ConvertError, KeepsCodeAndLine) {
  const base::Error errors[] = {base::fail(base::Errc::NotFound, "node99"),
                                base::fail(WireErrc::NotAllowed, "Set"),
                                base::fail(base::errno_code(ENOSPC), "store")};
  for (const auto& error : errors) {
    const auto message = to_wire(error, 125);
    EXPECT_EQ(message.exit_code(), 125);
    const auto back = from_wire(message);
    EXPECT_EQ(back.code(), error.code());
    EXPECT_EQ(back.context(), error.message());
  }
}

TEST(ConvertError, EscapesTextFromPeers) {
  wire::Error message;
  message.set_code(-5);
  message.set_text("\x1b[31m" + std::string(100'000, 'x'));
  const auto error = from_wire(message);
  EXPECT_TRUE(error.is(base::Errc::WrongState));
  EXPECT_EQ(error.context().find('\x1b'), std::string::npos);
  EXPECT_LE(error.context().size(), limits::kMaxErrorTextBytes);
  for (int code : {INT_MIN, 0, 12, 99, 100, 109, 999, 1000, 5096, INT_MAX}) {
    message.set_code(code);
    EXPECT_TRUE(from_wire(message).is(base::Errc::WrongState)) << code;
  }
}

}  // namespace
}  // namespace score::proto
