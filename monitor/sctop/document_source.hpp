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
  // words: of the command, found beside this program or in PATH. Errors: of spawn(), errno codes.
  static Result<DocumentSource> from_command(const std::vector<std::string>& words);
  static Result<DocumentSource> from_file(const std::string& path);
  ~DocumentSource();
  DocumentSource(DocumentSource&&) = default;
  DocumentSource& operator=(DocumentSource&&) = delete;

  [[nodiscard]] int descriptor() const { return input_.get(); }

  // Reads once, when the descriptor is readable; may block otherwise. False: the end.
  bool read();
  // The newest whole line since the last call.
  std::optional<std::string> newest();

 private:
  explicit DocumentSource(UniqueFd input) : input_(std::move(input)) {}

  UniqueFd input_;
  std::optional<SpawnedProcess> child_;
  std::string pending_;
  std::optional<std::string> line_;
};

// A command of this project: beside this program if it is there, else of PATH.
Result<std::string> find_command(const std::string& name);
std::vector<std::string> own_environment();

}  // namespace score::sctop
