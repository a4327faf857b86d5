// This file is tested by workload_test.cpp.
#include "bench/scsim/workload.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace score::scsim {

namespace {

constexpr double kHour_s = 3600;

}  // namespace

double offered_load(const Workload& workload) {
  if (workload.jobs.empty()) return 0;
  double work = 0;
  for (const SimJob& job : workload.jobs) work += job.run_s * job.nodes;
  const double span = workload.jobs.back().submit_s - workload.jobs.front().submit_s;
  return span > 0 ? work / span / workload.nodes : 0;
}

Workload on_nodes(Workload workload, std::uint32_t nodes) {
  if (nodes == workload.nodes) return workload;
  const double factor = double(nodes) / workload.nodes;
  for (SimJob& job : workload.jobs) {
    job.nodes = std::clamp(static_cast<std::uint32_t>(std::lround(job.nodes * factor)), 1U, nodes);
  }
  workload.nodes = nodes;
  return workload;
}

Workload at_load(Workload workload, double load) {
  const double offered = offered_load(workload);
  if (offered <= 0 || load <= 0) return workload;
  const double first = workload.jobs.front().submit_s;
  for (SimJob& job : workload.jobs) job.submit_s = (job.submit_s - first) * offered / load;
  return workload;
}

Workload window_of(Workload workload, double from_h, double hours) {
  const auto is_outside = [&](const SimJob& job) {
    return job.submit_s < from_h * kHour_s || job.submit_s >= (from_h + hours) * kHour_s;
  };
  std::erase_if(workload.jobs, is_outside);
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) workload.jobs[i].number = i + 1;
  return workload;
}

double busiest_h(const Workload& workload, double hours) {
  std::map<double, double> work;  // of each window
  for (const SimJob& job : workload.jobs) {
    work[std::floor(job.submit_s / kHour_s / hours) * hours] += job.run_s * job.nodes;
  }
  const auto most = std::max_element(
      work.begin(), work.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == work.end() ? 0 : most->first;
}

Workload compressed(Workload workload, double factor) {
  for (SimJob& job : workload.jobs) {
    job.submit_s /= factor;
    job.run_s /= factor;
  }
  return workload;
}

void draw_memory(Workload& workload, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> log2(-6, -1);
  for (SimJob& job : workload.jobs) job.memory = std::exp2(log2(random));
}

void draw_users(Workload& workload, std::uint32_t users, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> weights;
  for (std::uint32_t k = 1; k <= users; ++k) weights.push_back(1.0 / k);
  std::discrete_distribution<std::uint32_t> draw(weights.begin(), weights.end());
  for (SimJob& job : workload.jobs) {
    if (job.user == 0) job.user = draw(random) + 1;
  }
}

}  // namespace score::scsim
