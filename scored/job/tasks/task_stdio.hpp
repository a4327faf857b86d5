#pragma once
// Connects each task's standard streams to pipes to the shepherd, a terminal, files, or /dev/null.

#include "base/os/fd.hpp"
#include "scored/job/plan/plan.hpp"
#include "scored/job/tasks/input.hpp"
#include "scored/job/tasks/output.hpp"

#include <vector>

namespace score::shepherd {

class TaskStdio {
 public:
  // All arguments must outlive this object; the working directory must be the job's.
  TaskStdio(const Plan& plan, OutputPump& output, InputFeeder& input)
      : plan_(plan), output_(output), input_(input) {}

  // Opens the task's stdin, stdout and stderr, and passes the other ends to the pump, the feeder or
  // the terminal. Errors: errno codes with the file's name.
  base::Result<std::vector<base::UniqueFd>> open_task(std::uint32_t task);
  // Sets the size of rank 0's terminal, if it is on this node.
  void resize(std::uint32_t rows, std::uint32_t columns);

 private:
  using Opened = base::Result<base::UniqueFd>;
  Opened open_stdin(std::uint32_t task);
  static Opened open_input_file(const std::string& path);
  Opened open_stream(std::uint32_t task, wire::Stream stream);
  Opened open_output_file(std::uint32_t task, const std::string& pattern);
  base::Result<std::vector<base::UniqueFd>> open_terminal(std::uint32_t task);
  base::Result<std::string> name_of(std::uint32_t task, const std::string& pattern) const;

  const Plan& plan_;
  OutputPump& output_;
  InputFeeder& input_;
  base::UniqueFd terminal_;  // master
};

}  // namespace score::shepherd
