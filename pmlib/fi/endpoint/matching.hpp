// Decides which receive takes which message. A receive names a tag, the bits of it to ignore, and
// perhaps a source; a message has a tag and a source. A message goes to the oldest receive that
// fits, and a receive takes the oldest message that fits.
//
// Receives with the same set of ignored bits form a class (tuple space search; Srinivasan, Suri,
// Varghese, SIGCOMM 1999). Within a class the remaining bits must be equal, so a hash finds the
// match. A program has a handful of classes, so matching takes the same time with one receive
// posted as with a thousand. Messages that came too early are indexed by the same classes.
//
// The receive posted last stays outside of its class until the next one is posted. A program that
// alternates between receiving and waiting, as for most small messages, therefore needs no index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace score::pm::fi {

constexpr std::uint64_t kAnySource = ~std::uint64_t{0};

// Links an element into a circular list.
struct Chain {
  Chain* next = this;
  Chain* previous = this;

  Chain() = default;
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  bool is_alone() const { return next == this; }

  void append(Chain& element) {
    element.previous = previous;
    element.next = this;
    previous->next = &element;
    previous = &element;
  }

  void unlink() {
    previous->next = next;
    next->previous = previous;
    next = previous = this;
  }
};

// Holds the elements of one key, oldest first.
struct KeyQueue {
  std::uint64_t source = 0;
  std::uint64_t tag = 0;
  Chain elements;
  KeyQueue* next = nullptr;  // in its bucket, or in the list of spare ones
};

// Maps a source and a tag to a queue.
class KeyIndex {
 public:
  KeyIndex() : buckets_(kFirstBuckets) {}

  // Returns null if nothing is queued under this key.
  KeyQueue* find(std::uint64_t source, std::uint64_t tag) const;
  KeyQueue& find_or_add(std::uint64_t source, std::uint64_t tag);
  // Takes `element` out of `queue`, and removes `queue` if it is empty then.
  void take(KeyQueue& queue, Chain& element);

 private:
  static constexpr std::size_t kFirstBuckets = 16;

  std::size_t bucket_of(std::uint64_t source, std::uint64_t tag) const;
  void grow();

  std::vector<KeyQueue*> buckets_;
  std::deque<KeyQueue> storage_;
  KeyQueue* spare_ = nullptr;
  std::size_t used_ = 0;
};

// Holds the part of a posted receive that the table uses. The caller owns it.
struct PostedReceive : Chain {
  std::uint64_t source = kAnySource;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;

  // Only the table uses these.
  std::uint64_t order = 0;
  std::size_t in_class = 0;
  KeyQueue* queue = nullptr;
};

constexpr std::size_t kIndexedClasses = 8;

// Holds the part of an early message that the table uses. The caller owns it.
struct EarlyMessage {
  std::uint64_t source = 0;
  std::uint64_t tag = 0;

  // Only the table uses these.
  struct Hook : Chain {
    EarlyMessage* message = nullptr;
    KeyQueue* queue = nullptr;
  };

  Hook all;
  std::array<Hook, kIndexedClasses> hooks;
};

class MatchTable {
 public:
  // Removes and returns the oldest early message that `receive` takes; null if there is none.
  EarlyMessage* take_early(const PostedReceive& receive);
  // Returns the same message without removing it.
  EarlyMessage* find_early(const PostedReceive& receive);
  void remove_early(EarlyMessage& message);
  void add_early(EarlyMessage& message);

  // Returns the receive that takes a message, without removing it; null if there is none.
  PostedReceive* find_receive(std::uint64_t source, std::uint64_t tag) const {
    const bool is_alone = latest_ != nullptr && posted_ == 1;
    PostedReceive* const older = is_alone ? nullptr : find_indexed(source, tag);
    if (older != nullptr) return older;
    return latest_ != nullptr && takes(*latest_, source, tag) ? latest_ : nullptr;
  }

  void post(PostedReceive& receive) {
    if (latest_ != nullptr) index(*latest_);
    latest_ = &receive;
    ++posted_;
  }

  void remove(PostedReceive& receive) {
    --posted_;
    if (latest_ != &receive) return take_from_index(receive);
    latest_ = nullptr;
  }

  std::size_t posted_count() const { return posted_; }

  std::size_t early_count() const { return early_; }

 private:
  struct Class {
    std::uint64_t ignore = 0;
    bool any_source = false;
    std::size_t posted = 0;
    KeyIndex receives;
    KeyIndex early;
  };

  static std::uint64_t source_of(const Class& c, std::uint64_t source) {
    return c.any_source ? kAnySource : source;
  }

  static bool takes(const PostedReceive& r, std::uint64_t source, std::uint64_t tag) {
    return ((r.tag ^ tag) & ~r.ignore) == 0 && (r.source == kAnySource || r.source == source);
  }

  [[gnu::noinline]] PostedReceive* find_indexed(std::uint64_t source, std::uint64_t tag) const;
  [[gnu::noinline]] void index(PostedReceive& receive);
  [[gnu::noinline]] void take_from_index(PostedReceive& receive);
  std::size_t class_of(const PostedReceive& receive);
  void index_early(std::size_t in_class, EarlyMessage& message);

  std::vector<std::unique_ptr<Class>> classes_;
  Chain all_early_;
  std::uint64_t order_ = 0;
  PostedReceive* latest_ = nullptr;  // the youngest receive, if it is not in its class
  std::size_t posted_ = 0;
  std::size_t early_ = 0;
};

}  // namespace score::pm::fi
