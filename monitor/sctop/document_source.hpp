#pragma once
// Where documents come from: `score top --json` as a child, or a file of documents ("-": standard
// input). Lines come as bytes arrive; nothing blocks but read().

#include "base/os/spawn.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::sctop {

class DocumentSource {
 public:
  // words: of the command, found beside this program or in PATH. What it writes to standard error
  // goes to ours, or with `keeps_messages` to message(). Errors: of spawn(), errno codes.
  static Result<DocumentSource> from_command(const std::vector<std::string>& words,
                                             bool keeps_messages);
  static Result<DocumentSource> from_file(const std::string& path);
  ~DocumentSource();
  DocumentSource(DocumentSource&&) = default;
  DocumentSource& operator=(DocumentSource&&) = delete;

  [[nodiscard]] int descriptor() const { return input_.get(); }

  // Reads once, when the descriptor is readable; may block otherwise. False: the end.
  bool read();
  // The newest whole line since the last call.
  std::optional<std::string> newest();

  // Readable when the command has written a message; -1: there are none.
  [[nodiscard]] int message_descriptor() const { return messages_.get(); }

  // Reads messages, without waiting.
  void read_messages();

  // The last one, without the command's name; empty: there was none.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  explicit DocumentSource(UniqueFd input) : input_(std::move(input)) {}

  UniqueFd input_;
  std::optional<SpawnedProcess> child_;
  std::string pending_;
  std::optional<std::string> line_;
  UniqueFd messages_;
  std::string pending_message_, message_;
};

// A command of this project: beside this program if it is there, else of PATH.
Result<std::string> find_command(const std::string& name);
std::vector<std::string> own_environment();

}  // namespace score::sctop
