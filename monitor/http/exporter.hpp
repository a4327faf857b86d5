#pragma once
// Metrics as text for Prometheus (exposition format 0.0.4). The data model is prometheus-cpp's, and
// a test holds our text equal to its serializer's; the library itself is not linked into daemons:
// Debian has it only as a shared one, which would bring a second C++ library into every node
// (docs/adr/0009-metrics-without-a-second-cxx-library.md).

#include "base/time.hpp"
#include "monitor/sampler/samples.hpp"

#include <prometheus/metric_family.h>

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::monitor {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Exporter {
 public:
  // Each begins a family; the values that follow are its. Units are part of the name.
  Exporter& counter(std::string name, std::string help);
  Exporter& gauge(std::string name, std::string help);
  Exporter& histogram(std::string name, std::string help);

  Exporter& value(double value, const Labels& labels = {});

  Exporter& value(Duration value, const Labels& labels = {}) {
    return this->value(std::chrono::duration<double>(value).count(), labels);
  }

  template <class Of>
  Exporter& distribution(const Of& histogram, const Labels& labels = {}) {
    prometheus::ClientMetric& metric = add(labels);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      count += histogram.counts[i];
      const bool is_last = i == Of::bounds().size();
      metric.histogram.bucket.push_back({count, is_last ? kInfinite : seconds(Of::bounds()[i])});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = seconds(histogram.sum);
    return *this;
  }

  [[nodiscard]] const std::vector<prometheus::MetricFamily>& families() const { return families_; }

  [[nodiscard]] std::string text() const;

 private:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  static double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  Exporter& begin(std::string name, std::string help, prometheus::MetricType type);
  prometheus::ClientMetric& add(const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
};

// Of this process: names as every exporter has them (process_cpu_seconds_total ...).
void export_process(Exporter& out);
// Of one node's totals, as its own /metrics has them.
void export_node(Exporter& out, const NodeTotals& totals);

}  // namespace score::monitor
