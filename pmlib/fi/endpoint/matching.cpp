#include "pmlib/fi/endpoint/matching.hpp"

namespace score::pm::fi {

// --- index -------------------------------------------------------------------------------------

std::size_t KeyIndex::bucket_of(std::uint64_t source, std::uint64_t tag) const {
  std::uint64_t x = (tag ^ source * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 31;
  return static_cast<std::size_t>(x) & (buckets_.size() - 1);
}

KeyQueue* KeyIndex::find(std::uint64_t source, std::uint64_t tag) const {
  for (KeyQueue* q = buckets_[bucket_of(source, tag)]; q != nullptr; q = q->next) {
    if (q->tag == tag && q->source == source) return q;
  }
  return nullptr;
}

KeyQueue& KeyIndex::find_or_add(std::uint64_t source, std::uint64_t tag) {
  if (KeyQueue* q = find(source, tag); q != nullptr) return *q;
  if (used_ >= buckets_.size()) grow();
  KeyQueue* q = spare_;
  if (q != nullptr) {
    spare_ = q->next;
  } else {
    q = &storage_.emplace_back();
  }
  q->source = source;
  q->tag = tag;
  KeyQueue*& bucket = buckets_[bucket_of(source, tag)];
  q->next = bucket;
  bucket = q;
  ++used_;
  return *q;
}

void KeyIndex::take(KeyQueue& queue, Chain& element) {
  element.unlink();
  if (!queue.elements.is_alone()) return;
  KeyQueue** at = &buckets_[bucket_of(queue.source, queue.tag)];
  while (*at != &queue) at = &(*at)->next;
  *at = queue.next;
  queue.next = spare_;
  spare_ = &queue;
  --used_;
}

void KeyIndex::grow() {
  std::vector<KeyQueue*> old(buckets_.size() * 2, nullptr);
  old.swap(buckets_);
  for (KeyQueue* q : old) {
    while (q != nullptr) {
      KeyQueue* const next = q->next;
      KeyQueue*& bucket = buckets_[bucket_of(q->source, q->tag)];
      q->next = bucket;
      bucket = q;
      q = next;
    }
  }
}

// --- classes -----------------------------------------------------------------------------------

std::size_t MatchTable::class_of(const PostedReceive& receive) {
  const bool any_source = receive.source == kAnySource;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (classes_[i]->ignore == receive.ignore && classes_[i]->any_source == any_source) return i;
  }
  classes_.push_back(std::make_unique<Class>());
  classes_.back()->ignore = receive.ignore;
  classes_.back()->any_source = any_source;
  const std::size_t added = classes_.size() - 1;
  for (Chain* c = all_early_.next; added < kIndexedClasses && c != &all_early_; c = c->next) {
    index_early(added, *static_cast<EarlyMessage::Hook*>(c)->message);
  }
  return added;
}

// --- early messages ----------------------------------------------------------------------------

void MatchTable::index_early(std::size_t in_class, EarlyMessage& message) {
  Class& c = *classes_[in_class];
  KeyQueue& queue = c.early.find_or_add(source_of(c, message.source), message.tag & ~c.ignore);
  EarlyMessage::Hook& hook = message.hooks[in_class];
  hook.message = &message;
  hook.queue = &queue;
  queue.elements.append(hook);
}

void MatchTable::add_early(EarlyMessage& message) {
  message.all.message = &message;
  all_early_.append(message.all);
  ++early_;
  for (std::size_t i = 0; i < classes_.size() && i < kIndexedClasses; ++i) index_early(i, message);
}

void MatchTable::remove_early(EarlyMessage& message) {
  message.all.unlink();
  --early_;
  for (std::size_t i = 0; i < classes_.size() && i < kIndexedClasses; ++i) {
    EarlyMessage::Hook& hook = message.hooks[i];
    classes_[i]->early.take(*hook.queue, hook);
  }
}

EarlyMessage* MatchTable::find_early(const PostedReceive& receive) {
  if (early_ == 0) return nullptr;
  const std::size_t in_class = class_of(receive);
  const Class& c = *classes_[in_class];
  if (in_class < kIndexedClasses) {
    const KeyQueue* queue = c.early.find(receive.source, receive.tag & ~c.ignore);
    if (queue == nullptr) return nullptr;
    return static_cast<EarlyMessage::Hook*>(queue->elements.next)->message;
  }
  for (Chain* at = all_early_.next; at != &all_early_; at = at->next) {
    EarlyMessage* message = static_cast<EarlyMessage::Hook*>(at)->message;
    if (!c.any_source && message->source != receive.source) continue;
    if (((message->tag ^ receive.tag) & ~c.ignore) == 0) return message;
  }
  return nullptr;
}

EarlyMessage* MatchTable::take_early(const PostedReceive& receive) {
  EarlyMessage* found = find_early(receive);
  if (found != nullptr) remove_early(*found);
  return found;
}

// --- receives ----------------------------------------------------------------------------------

void MatchTable::index(PostedReceive& receive) {
  receive.in_class = class_of(receive);
  receive.order = ++order_;
  Class& c = *classes_[receive.in_class];
  receive.queue = &c.receives.find_or_add(receive.source, receive.tag & ~c.ignore);
  receive.queue->elements.append(receive);
  ++c.posted;
}

void MatchTable::take_from_index(PostedReceive& receive) {
  Class& c = *classes_[receive.in_class];
  c.receives.take(*receive.queue, receive);
  --c.posted;
}

PostedReceive* MatchTable::find_indexed(std::uint64_t source, std::uint64_t tag) const {
  PostedReceive* best = nullptr;
  for (const auto& c : classes_) {
    if (c->posted == 0) continue;
    const KeyQueue* queue = c->receives.find(source_of(*c, source), tag & ~c->ignore);
    if (queue == nullptr) continue;
    auto* first = static_cast<PostedReceive*>(queue->elements.next);
    if (best == nullptr || first->order < best->order) best = first;
  }
  return best;
}

}  // namespace score::pm::fi
