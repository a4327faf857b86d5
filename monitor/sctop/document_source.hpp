#pragma once
// DocumentSource reads documents from `score top --json` as a child, or from a file of documents
// ("-": standard input). Lines come as bytes arrive; only read() may block.

#include "base/os/spawn.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::sctop {

class DocumentSource {
 public:
  // Starts the command in `words`, found next to this program or in PATH. Its standard error goes
  // to ours, or with `keeps_messages` to message(). Errors: of spawn(), errno codes.
  static Result<DocumentSource> from_command(const std::vector<std::string>& words,
                                             bool keeps_messages);
  static Result<DocumentSource> from_file(const std::string& path);
  ~DocumentSource();
  DocumentSource(DocumentSource&&) = default;
  DocumentSource& operator=(DocumentSource&&) = delete;

  [[nodiscard]] int descriptor() const { return input_.get(); }

  // Reads once. Call it when the descriptor is readable; otherwise it may block. Returns false at
  // the end.
  bool read();
  // Returns the newest whole line since the last call.
  std::optional<std::string> newest();

  // Returns the descriptor that is readable when the command has written a message, or -1 if there
  // is none.
  [[nodiscard]] int message_descriptor() const { return messages_.get(); }

  // Reads messages without waiting.
  void read_messages();

  // Returns the last message without the command's name; empty: there was none.
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

// Returns a command of this project: next to this program if it is there, otherwise from PATH.
Result<std::string> find_command(const std::string& name);

}  // namespace score::sctop
