// Reports whether a call of the current thread has returned, without a change of the program: the
// kernel counts how often the thread executes the instruction after the call (a hardware
// breakpoint, see perf_event_open(2)). It stops counting after the first time, so a program that
// returns often pays for one trap only. Linux allows this where kernel.perf_event_paranoid is at
// most 2 and a breakpoint is free.
#pragma once

namespace score::pm::fi {

class CallReturn {
 public:
  CallReturn() = default;
  ~CallReturn();
  CallReturn(const CallReturn&) = delete;
  CallReturn& operator=(const CallReturn&) = delete;

  // Watches the return to `address` in the calling thread; a watch before it ends. Returns false if
  // that is impossible.
  bool watch(const void* address);
  // Returns true if the call has returned since watch(), or if nothing is watched.
  [[nodiscard]] bool has_returned() const;
  void stop();

 private:
  int fd_ = -1;
};

}  // namespace score::pm::fi
