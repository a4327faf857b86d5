#pragma once
// Exporter writes metrics for Prometheus, with one registry of prometheus-cpp per scrape. The
// daemons keep their totals as plain values, and a scrape copies them. So nothing remains of a node
// or label that is gone.

#include "base/time.hpp"
#include "monitor/sampler/samples.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>
#include <type_traits>
#include <vector>

namespace score::monitor {

using prometheus::Labels;

// A Series holds the values of one family. Each set of labels may be given once.
template <class Metric>
class Series {
 public:
  // The family's registry must outlive this object.
  explicit Series(prometheus::Family<Metric>& family) : family_(family) {}

  Series& value(double value, const Labels& labels = {}) {
    if constexpr (std::is_same_v<Metric, prometheus::Counter>) {
      family_.Add(labels).Increment(value);
    } else {
      family_.Add(labels).Set(value);
    }
    return *this;
  }

  Series& value(Duration value, const Labels& labels = {}) {
    return this->value(in_seconds(value), labels);
  }

  // Adds a distribution. `Of` is TimeHistogram, or a type with `counts`, `sum` and bounds() in
  // nanoseconds.
  template <class Of>
  Series& distribution(const Of& histogram, const Labels& labels = {}) {
    std::vector<double> bounds;
    for (const Duration bound : Of::bounds()) bounds.push_back(in_seconds(bound));
    const std::vector<double> counts(histogram.counts.begin(), histogram.counts.end());
    family_.Add(labels, bounds).ObserveMultiple(counts, in_seconds(histogram.sum));
    return *this;
  }

 private:
  static double in_seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  prometheus::Family<Metric>& family_;
};

class Exporter {
 public:
  // Each call adds a family. Units are part of the name.
  Series<prometheus::Counter> counter(const std::string& name, const std::string& help);
  Series<prometheus::Gauge> gauge(const std::string& name, const std::string& help);
  Series<prometheus::Histogram> histogram(const std::string& name, const std::string& help);

  // Returns exposition format 0.0.4. A family without values is left out.
  [[nodiscard]] std::string text() const;

 private:
  prometheus::Registry registry_;
};

// Writes the metrics of this process, under the usual names of exporters (process_cpu_seconds_total
// ...).
void export_process(Exporter& out);
// Writes the metrics of one node's totals, as on its own /metrics.
void export_node(Exporter& out, const NodeTotals& totals);

}  // namespace score::monitor
