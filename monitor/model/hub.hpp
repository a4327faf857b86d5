#pragma once
// The Hub assigns viewers to documents. Viewers with the same rate, filter and rights form a group:
// one document is made for all of them, and its bytes are shared. It has no queue: a viewer keeps
// at most the newest document that it has not taken. It is for one thread, without I/O.

#include "base/result.hpp"
#include "base/shares.hpp"
#include "monitor/model/document.hpp"
#include "monitor/model/viewer_options.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace score::monitor {

using Frame = std::shared_ptr<const std::string>;

// Receives a document. Returns false if it replaces a document that was not taken yet.
using Deliver = std::function<bool(Frame)>;

enum class ViewerId : std::uint64_t {};

class Hub {
 public:
  static constexpr std::size_t kMaxViewers = shares::kViewers.places;
  static constexpr std::size_t kMaxGroups = shares::kFilters.places;
  static constexpr std::size_t kMaxViewersOfOwner = shares::kViewers.per_user;
  static constexpr std::size_t kMaxGroupsOfOwner = shares::kFilters.per_user;

  // Makes a document; `sequence` is the number of earlier documents of its group.
  using Encode = std::function<Frame(const ViewerOptions&, const Sight&, std::uint64_t sequence)>;

  // Adds a viewer. `owner` is the user, or the address of a viewer without a login. The newest
  // document of its group is delivered at once, if there is one. Errors: Busy.
  [[nodiscard]] Result<ViewerId> add(const std::string& owner, const ViewerOptions& options,
                                     const Sight& sight, Deliver deliver);
  // Changes the options of a viewer. Errors: Busy (the viewer is unchanged), NotFound.
  [[nodiscard]] Status change(ViewerId viewer, const ViewerOptions& options);
  void pause(ViewerId viewer, bool paused);
  void remove(ViewerId viewer);

  // Delivers to all groups that are due at this tick.
  void tick(std::uint64_t number, const Encode& encode);

  [[nodiscard]] std::size_t viewer_count() const { return viewers_.size(); }

  // Returns the shortest period of the viewers that are not paused, or 0 without such a viewer.
  [[nodiscard]] std::uint32_t shortest_ticks() const;

  // Returns true if a viewer that is not paused requests the part.
  [[nodiscard]] bool wants(Part part) const;

  struct Counters {
    std::uint64_t encoded = 0, delivered = 0, skipped = 0, bytes = 0;
  };

  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  struct Key {
    std::uint32_t ticks = 0;
    Filter filter;
    Sight sight;

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  struct Group {
    std::uint64_t sequence = 0;
    std::size_t members = 0;  // viewers that are not paused
    std::size_t viewers = 0;
    Frame newest;
  };

  struct Viewer {
    std::string owner;
    Key key;
    Deliver deliver;
    bool paused = false;
  };

  // Returns an error if there is no place for one more viewer, or for one more group.
  [[nodiscard]] Status check_viewers(const std::string& owner) const;
  [[nodiscard]] Status check_groups(const std::string& owner, const Key& key,
                                    std::optional<ViewerId> leaves) const;
  void leave(const Key& key, bool paused);
  void deliver(Viewer& viewer, const Frame& frame);

  std::map<ViewerId, Viewer> viewers_;
  std::map<Key, Group> groups_;
  std::uint64_t last_id_ = 0;
  Counters counters_;
};

}  // namespace score::monitor
