#pragma once
// Reads and writes the files of a set of images beside those of criu. A set is a directory of the
// job's user:
//
//   complete      written last, in one step: the number of tasks on each node, and the checksum of
//                 each node's list
//   job           wire::Submit of the job
//   node_I/tasks  what a shepherd needs to take over the tasks of node I
//   node_I/pmi    what the tasks rely on at their PMI server, if there is one
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

  // The network of PM: the key of its contexts (0: none), and [task][link] the inode of the socket.
  std::uint64_t network_key = 0;
  std::vector<std::uint64_t> sockets;
  std::string pmi;  // PmiServer::saved(), in a file of its own; empty: none
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
  // Completes criu's images: they will take new sockets of PM at a restore (socket_images.hpp), and
  // the shared memory of the processes is beside them. Errors: errno codes, Malformed.
  [[nodiscard]] base::Status add_to_node(std::uint32_t index, const NodeImage& image,
                                         std::span<const pid_t> processes) const;
  // Writes `tasks`, `pmi` and `list`, and has all files of the directory stored. Returns the bytes
  // of the images. Errors: errno codes.
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

  // Returns the directory of a node.
  [[nodiscard]] std::string node(std::uint32_t index) const;

 private:
  [[nodiscard]] base::Status replace_sockets(std::uint32_t index,
                                             std::span<const std::uint64_t> inodes) const;
  void remove_older() const;

  std::string directory_;
};

}  // namespace score::shepherd
