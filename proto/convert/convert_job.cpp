#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/path_pattern.hpp"
#include "proto/convert/convert.hpp"
#include "proto/frames/field_check.hpp"

#include <algorithm>

namespace score::proto {

namespace limits = base::limits;
using base::Result;

namespace {

constexpr std::int32_t kFirstWireCode = 100;
constexpr std::int32_t kFirstErrno = 1000;
constexpr std::int32_t kLastErrno = kFirstErrno + 4095;

// Adds the number of bytes that execve counts for the texts to `bytes`.
void check_texts(FieldCheck& check, std::string_view field,
                 const google::protobuf::RepeatedPtrField<std::string>& texts, std::size_t& bytes) {
  for (const auto& text : texts) {
    if (!check.ok()) return;
    check.c_string(field, text, limits::kMaxExecBytes);
    bytes += text.size() + limits::kExecBytesPerString;
  }
  if (bytes <= limits::kMaxExecBytes) return;
  check.require(field, false,
                fmt::format("makes arguments and environment {} bytes in all, limit {}", bytes,
                            limits::kMaxExecBytes));
}

void check_environment(FieldCheck& check,
                       const google::protobuf::RepeatedPtrField<std::string>& variables,
                       std::size_t& bytes) {
  check_texts(check, "env", variables, bytes);
  for (const auto& variable : variables) {
    auto equals = variable.find('=');
    check.require("env", equals != std::string::npos && equals > 0,
                  "has an entry that is not NAME=value");
  }
}

// The sizes of all programs count together: one exec never gets more, and the specification stays
// within a frame.
void check_programs(FieldCheck& check, const wire::LaunchSpec& spec) {
  check.require("programs", spec.programs_size() > 0, "is empty");
  google::protobuf::RepeatedPtrField<std::string> words;
  google::protobuf::RepeatedPtrField<std::string> variables = spec.env();
  std::uint64_t tasks = 0;
  for (const auto& program : spec.programs()) {
    const bool is_named = program.argv_size() > 0 && !program.argv(0).empty();
    check.require("argv", is_named, "names no program");
    check.require("tasks", spec.programs_size() == 1 || program.tasks() > 0, "is 0");
    check.c_string("directory", program.directory(), limits::kMaxPathBytes);
    check.require("directory", program.directory().empty() || program.directory().starts_with('/'),
                  "is not absolute");
    words.MergeFrom(program.argv());
    variables.MergeFrom(program.env());
    tasks += program.tasks();
    if (!check.ok()) return;
  }
  check.at_most("tasks", tasks, limits::kMaxTasksPerJob);
  std::size_t bytes = 0;
  check_texts(check, "argv", words, bytes);
  check_environment(check, variables, bytes);
}

void check_paths(FieldCheck& check, const wire::LaunchSpec& spec) {
  check.require("directory", spec.directory().starts_with('/'), "is not absolute");
  const auto file = [&check](std::string_view field, const std::string& pattern) {
    check.c_string(field, pattern, limits::kMaxPathBytes);
    if (!check.ok()) return;
    const auto sound = base::check_pattern(pattern);
    check.require(field, sound.has_value(), sound ? std::string() : sound.error().context());
  };
  file("stdin_path", spec.stdin_path());
  file("stdout_path", spec.stdout_path());
  file("stderr_path", spec.stderr_path());
}

void check_script(FieldCheck& check, const wire::LaunchSpec& spec) {
  const std::string& script = spec.script();
  if (script.empty()) return;
  check.at_most("script", script.size(), limits::kMaxScriptBytes);
  check.require("script", script.starts_with("#!"), "does not begin with #!");
  check.require("script", script.find('\0') == std::string::npos, "contains a NUL byte");
  check.require("programs", spec.programs_size() == 1, "are several beside a script");
}

}  // namespace

Result<void> check_launch_spec(const wire::LaunchSpec& spec) {
  FieldCheck check("LaunchSpec");
  check_rules(check, spec);
  check_programs(check, spec);
  check_paths(check, spec);
  check.require("nodelist", base::expand_hostlist(spec.nodelist()).has_value(), "is no host list");
  for (const auto& limit : spec.limits()) {
    check.require("limits", limit.soft() <= limit.hard(), "has a soft limit above the hard one");
  }
  check_script(check, spec);
  return check.result();
}

std::string to_wire(const base::RequestId& id) {
  std::string bytes;
  for (std::uint64_t half : {id.high, id.low}) {
    for (unsigned shift = 64; shift > 0; shift -= 8) {
      bytes += static_cast<char>(half >> (shift - 8) & 0xff);
    }
  }
  return bytes;
}

Result<base::RequestId> request_id_from_wire(std::string_view bytes) {
  if (bytes.size() != 16) {
    return base::fail(WireErrc::BadMessage, "request id of {} bytes, must be 16", bytes.size());
  }
  base::RequestId id;
  for (std::size_t i = 0; i < 16; ++i) {
    std::uint64_t& half = i < 8 ? id.high : id.low;
    half = half << 8U | static_cast<unsigned char>(bytes[i]);
  }
  if (id.is_none()) return base::fail(WireErrc::BadMessage, "request id is all zero");
  return id;
}

wire::Error to_wire(const base::Error& error, int exit_code) {
  wire::Error out;
  const auto& code = error.code();
  if (code.category() == base::errc_category()) {
    out.set_code(code.value());
  } else if (code.category() == wire_category()) {
    out.set_code(kFirstWireCode + code.value());
  } else if (code.category() == std::generic_category() ||
             code.category() == std::system_category()) {
    out.set_code(std::clamp(code.value() + kFirstErrno, kFirstErrno, kLastErrno));
  }
  out.set_text(error.message().substr(0, limits::kMaxErrorTextBytes));
  out.set_exit_code(exit_code);
  return out;
}

base::Error from_wire(const wire::Error& message) {
  std::error_code code = base::Errc::WrongState;
  std::int32_t number = message.code();
  if (number > 0 && number <= static_cast<int>(base::Errc::Closed)) {
    code = static_cast<base::Errc>(number);
  } else if (number > kFirstWireCode &&
             number <= kFirstWireCode + static_cast<int>(WireErrc::BadPeer)) {
    code = static_cast<WireErrc>(number - kFirstWireCode);
  } else if (number > kFirstErrno && number <= kLastErrno) {
    code = base::errno_code(number - kFirstErrno);
  }
  return base::Error(code, base::escape_terminal(message.text(), limits::kMaxErrorTextBytes));
}

}  // namespace score::proto
