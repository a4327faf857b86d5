#pragma once
// Reads and writes the files of a set of images beside those of criu. A set is a directory of the
// job's user:
//
//   complete      written last, in one step: the number of tasks on each node, and the checksum of
//                 each node's list
//   job           wire::Submit of the job
//   node_I/tasks  what a shepherd needs to take over the tasks of node I
//   node_I/list   size and checksum of each file of that directory
//   node_I/*.img  criu's images

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "scored/job/checkpoint/criu_client.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

// NodeImage describes the saved tasks of one node.
struct NodeImage {
  struct Stream {
    std::uint32_t task = 0;  // kOfParent: of scored-task-parent
    std::uint32_t slot = 0;  // descriptor with which the task began
    CriuClient::Stream stream;
  };

  static constexpr std::uint32_t kOfParent = UINT32_MAX;

  pid_t parent = 0;          // scored-task-parent
  pid_t last = 0;            // the last process id that was given
  std::vector<pid_t> tasks;  // [task]; 0: it has ended
  std::vector<Stream> streams;
  std::string script;  // path of the batch script; empty: none
};

std::string image_text(const NodeImage& image);
base::Result<NodeImage> parse_image(std::string_view text);

class ImageSet {
 public:
  explicit ImageSet(std::string directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const std::string& directory() const { return directory_; }

  // Makes the directory of a node, and those above it that are missing. Errors: errno codes; Denied
  // (it belongs to another user), Exists.
  [[nodiscard]] base::Result<base::UniqueFd> make_node(std::uint32_t index) const;
  // Writes `tasks` and `list`, and has all files of the directory stored. Returns the bytes of the
  // images. Errors: errno codes.
  [[nodiscard]] base::Result<std::uint64_t> finish_node(std::uint32_t index,
                                                        const NodeImage& image) const;
  // Marks the set as complete, and removes the sets before it. Errors: errno codes; NotFound (a
  // node's images are not there).
  [[nodiscard]] base::Status complete(std::span<const std::uint32_t> tasks_on_node,
                                      std::string_view submission) const;
  // Removes what this node has in an incomplete set.
  void abandon(std::uint32_t index) const;

  // Checks this node's part of a complete set, byte for byte. Errors: errno codes; NotFound (not
  // complete), Denied (another user's), Malformed, WrongState (other numbers of tasks).
  [[nodiscard]] base::Result<NodeImage> check_node(
      std::uint32_t index, std::span<const std::uint32_t> tasks_on_node) const;
  [[nodiscard]] base::Result<base::UniqueFd> open_node(std::uint32_t index) const;

  // Returns the last error in a log of criu; empty if there is none.
  [[nodiscard]] std::string error_of(std::uint32_t index, const char* log) const;

 private:
  [[nodiscard]] std::string node(std::uint32_t index) const;
  void remove_older() const;

  std::string directory_;
};

}  // namespace score::shepherd
