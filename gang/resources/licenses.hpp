#pragma once
// The class Licenses counts resources of the whole cluster that jobs hold while they have a place.
// It never grants more than there are. So that jobs with few licenses do not pass one with many for
// ever, the first job that waits for a license has its number kept from the jobs behind it. The
// class is pure.

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "gang/state/job.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::gang {

class Licenses {
 public:
  // Replaces the numbers of licenses. If jobs hold more than there are now, none is granted until
  // they have given back enough. `release_suspended`: a suspended job holds none.
  void set(const std::vector<base::License>& totals, bool release_suspended);

  // Checks whether the request could ever be granted. Errors: one line for the user (NotFound,
  // TooLarge, Unsupported).
  [[nodiscard]] base::Result<void> check(const base::ResourceRequest& request) const;

  // ---- what jobs hold; a job without cells of its own (a step, an overlay job) holds none
  // Returns whether the waiting job may have its licenses now.
  [[nodiscard]] bool has_room(const Job& job) const;
  // Grants the job its licenses; nothing happens if it has them.
  void take(const Job& job);
  // Returns the job's licenses; nothing happens if it has none.
  void give_back(JobId job);

  // The job is suspended. Returns true if it has given back licenses.
  bool suspended(const Job& job);
  // Checks whether a suspended job may continue, for which it needs its licenses again. Errors:
  // Busy, one line for the user.
  [[nodiscard]] base::Result<void> check_resume(const Job& job) const;

  // ---- jobs that wait
  // Forgets them all; a pass over the queue begins.
  void begin_pass() { awaited_.clear(); }

  // Records that the job waits for its licenses.
  void await(const Job& job);
  // Returns true if room was kept for the job.
  bool forget(JobId job);

  // ---- views
  struct Count {
    std::uint32_t total = 0;
    std::uint64_t used = 0;

    friend bool operator==(const Count&, const Count&) = default;
  };

  [[nodiscard]] const std::map<std::string, Count>& all() const { return counts_; }

  // Returns the reasons why the job may not have its licenses; none if it may.
  [[nodiscard]] std::vector<std::string> why_short(const Job& job) const;
  // Computes the counts again from what the jobs hold and compares.
  [[nodiscard]] base::Result<void> check() const;

 private:
  struct Awaited {
    WaitKey wait;
    std::uint32_t count = 0;
  };

  [[nodiscard]] std::uint64_t free(const std::string& name) const;
  [[nodiscard]] const Awaited* kept_from(const Job& job, const std::string& name) const;

  bool release_suspended_ = false;
  std::map<std::string, Count> counts_;  // also removed ones that jobs still hold, with total 0
  std::map<JobId, std::vector<base::License>> held_;
  std::map<std::string, Awaited> awaited_;  // the first waiting job of each license
};

}  // namespace score::gang
