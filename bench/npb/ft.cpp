// Implements FT: it computes a partial differential equation by three-dimensional Fourier
// transforms. In space the grid is divided along y, and each rank has planes [y][z][x]; in
// frequency it is divided along x, as [x][z][y]. So two of the three transforms are local on each
// side, and one all-to-all exchange lies between. (NPB divides along z; along x and y all classes
// can be divided among 64 ranks.)
#include "bench/npb/kernel.hpp"
#include "bench/npb/random.hpp"

#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

namespace score::npb {

namespace {

using Complex = std::complex<double>;

constexpr double kDiffusion = 1e-6;
constexpr double kTolerance = 1e-12;
constexpr std::size_t kIterations = 6;
constexpr std::size_t kLinesPerTick = 8;
constexpr std::size_t kSamples = 1024;  // points in a checksum

struct Problem {
  std::size_t nx, ny, nz;
  std::array<Complex, kIterations> checksums;  // published

  [[nodiscard]] std::size_t points() const { return nx * ny * nz; }
};

std::optional<Problem> ft_problem_of(char size) {
  switch (size) {
    case 'S':
      return Problem{64,
                     64,
                     64,
                     {Complex{5.546087004964e+02, 4.845363331978e+02},
                      {5.546385409189e+02, 4.865304269511e+02},
                      {5.546148406171e+02, 4.883910722336e+02},
                      {5.545423607415e+02, 4.901273169046e+02},
                      {5.544255039624e+02, 4.917475857993e+02},
                      {5.542683411902e+02, 4.932597244941e+02}}};
    case 'W':
      return Problem{128,
                     128,
                     32,
                     {Complex{5.673612178944e+02, 5.293246849175e+02},
                      {5.631436885271e+02, 5.282149986629e+02},
                      {5.594024089970e+02, 5.270996558037e+02},
                      {5.560698047020e+02, 5.260027904925e+02},
                      {5.530898991250e+02, 5.249400845633e+02},
                      {5.504159734538e+02, 5.239212247086e+02}}};
    case 'A':
      return Problem{256,
                     256,
                     128,
                     {Complex{5.046735008193e+02, 5.114047905510e+02},
                      {5.059412319734e+02, 5.098809666433e+02},
                      {5.069376896287e+02, 5.098144042213e+02},
                      {5.077892868474e+02, 5.101336130759e+02},
                      {5.085233095391e+02, 5.104914655194e+02},
                      {5.091487099959e+02, 5.107917842803e+02}}};
    default:
      return std::nullopt;
  }
}

// Multiplies without tests for infinities, which do not occur.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Computes transforms of one length, a power of two, by Stockham's algorithm. It needs no bit
// reversal: every step goes from one array into the other.
class Transform {
 public:
  explicit Transform(std::size_t length) : roots_(length / 2), work_(length) {
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
      roots_[i] = {std::cos(angle), std::sin(angle)};
    }
  }

  // Replaces `work_.size()` values, `stride` apart, by their transform. The inverse is not scaled.
  void apply(Complex* values, std::size_t stride, bool inverse) {
    const std::size_t n = work_.size();
    line_.resize(n);
    for (std::size_t i = 0; i < n; ++i) line_[i] = values[i * stride];
    for (std::size_t half = n / 2, block = 1; half >= 1; half /= 2, block *= 2) {
      for (std::size_t j = 0; j < half; ++j) {
        const Complex root = inverse ? std::conj(roots_[j * block]) : roots_[j * block];
        for (std::size_t k = 0; k < block; ++k) {
          const Complex a = line_[j * block + k];
          const Complex b = line_[(j + half) * block + k];
          work_[2 * j * block + k] = a + b;
          work_[(2 * j + 1) * block + k] = times(root, a - b);
        }
      }
      std::swap(line_, work_);
    }
    for (std::size_t i = 0; i < n; ++i) values[i * stride] = line_[i];
  }

 private:
  std::vector<Complex> roots_;
  std::vector<Complex> line_, work_;
};

class Ft final : public Kernel {
 public:
  Ft(Problem problem, Communicator& network)
      : p_(std::move(problem)),
        network_(network),
        own_x_(p_.nx / network.size()),
        own_y_(p_.ny / network.size()),
        along_x_(p_.nx),
        along_y_(p_.ny),
        along_z_(p_.nz),
        space_(p_.nx * own_y_ * p_.nz),
        spectrum_(space_.size()),
        decayed_(space_.size()),
        packed_(space_.size()),
        decay_(space_.size()),
        part_bytes_(network.size(), space_.size() / network.size() * sizeof(Complex)) {}

  void prepare() override {
    const std::size_t first_y = network_.rank() * own_y_;
    for (std::size_t z = 0; z < p_.nz; ++z) {
      for (std::size_t y = 0; y < own_y_; ++y) {
        Random random(Random::kSeed, 2 * p_.nx * (first_y + y + p_.ny * z));
        for (std::size_t x = 0; x < p_.nx; ++x) {
          const double real = random.next();
          space_[(y * p_.nz + z) * p_.nx + x] = {real, random.next()};
        }
      }
    }
    find_decay();
  }

  void run(Meter& meter) override {
    to_spectrum(meter);
    for (Complex& sum : sums_) {
      for (std::size_t i = 0; i < spectrum_.size(); ++i) spectrum_[i] *= decay_[i];
      decayed_ = spectrum_;
      to_space(meter);
      sum = checksum();
    }
  }

  Verdict verify() override {
    Verdict verdict{true, {}};
    for (std::size_t i = 0; i < kIterations; ++i) {
      verdict.is_right = verdict.is_right &&
                         is_close(sums_[i].real(), p_.checksums[i].real(), kTolerance) &&
                         is_close(sums_[i].imag(), p_.checksums[i].imag(), kTolerance);
    }
    verdict.detail = compared("last checksum", sums_.back().real(), p_.checksums.back().real()) +
                     ", " + compared("i", sums_.back().imag(), p_.checksums.back().imag());
    return verdict;
  }

 private:
  // Computes exp(-4 pi^2 alpha |k|^2), with k from -n/2 to n/2 - 1.
  void find_decay() {
    const auto square = [](std::size_t i, std::size_t n) {
      const double k = static_cast<double>(i) - (i < n / 2 ? 0.0 : static_cast<double>(n));
      return k * k;
    };
    const double factor = -4 * std::numbers::pi * std::numbers::pi * kDiffusion;
    std::size_t i = 0;
    for (std::size_t x = 0; x < own_x_; ++x) {
      for (std::size_t z = 0; z < p_.nz; ++z) {
        for (std::size_t y = 0; y < p_.ny; ++y) {
          const double k =
              square(network_.rank() * own_x_ + x, p_.nx) + square(z, p_.nz) + square(y, p_.ny);
          decay_[i++] = std::exp(factor * k);
        }
      }
    }
  }

  // Transforms space_ into spectrum_ and overwrites space_.
  void to_spectrum(Meter& meter) {
    transform_planes(false, meter);
    // Packs for each rank the columns x that it will have: [x][y][z].
    std::size_t i = 0;
    for (std::size_t x = 0; x < p_.nx; ++x) {
      for (std::size_t yz = 0; yz < own_y_ * p_.nz; ++yz) packed_[i++] = space_[yz * p_.nx + x];
    }
    exchange_all(packed_, space_);
    i = 0;
    for (std::size_t source = 0; source < network_.size(); ++source) {
      for (std::size_t x = 0; x < own_x_; ++x) {
        for (std::size_t y = source * own_y_; y < (source + 1) * own_y_; ++y) {
          for (std::size_t z = 0; z < p_.nz; ++z) {
            spectrum_[(x * p_.nz + z) * p_.ny + y] = space_[i++];
          }
        }
      }
    }
    transform_lines(spectrum_, false, meter);
  }

  // Transforms decayed_ into space_ and overwrites decayed_, by the steps of to_spectrum() in
  // reverse.
  void to_space(Meter& meter) {
    transform_lines(decayed_, true, meter);
    std::size_t i = 0;
    for (std::size_t target = 0; target < network_.size(); ++target) {
      for (std::size_t x = 0; x < own_x_; ++x) {
        for (std::size_t y = target * own_y_; y < (target + 1) * own_y_; ++y) {
          for (std::size_t z = 0; z < p_.nz; ++z) {
            packed_[i++] = decayed_[(x * p_.nz + z) * p_.ny + y];
          }
        }
      }
    }
    exchange_all(packed_, decayed_);
    i = 0;
    for (std::size_t x = 0; x < p_.nx; ++x) {
      for (std::size_t yz = 0; yz < own_y_ * p_.nz; ++yz) space_[yz * p_.nx + x] = decayed_[i++];
    }
    transform_planes(true, meter);
  }

  // Computes the transforms of space_ along z and x, in place.
  void transform_planes(bool inverse, Meter& meter) {
    for (std::size_t y = 0; y < own_y_; ++y) {
      Complex* plane = &space_[y * p_.nz * p_.nx];
      for (std::size_t x = 0; x < p_.nx; ++x) {
        along_z_.apply(plane + x, p_.nx, inverse);
        count_line(meter);
      }
      for (std::size_t z = 0; z < p_.nz; ++z) {
        along_x_.apply(plane + z * p_.nx, 1, inverse);
        count_line(meter);
      }
    }
  }

  // Computes the transforms of `values` along y, in place.
  void transform_lines(std::vector<Complex>& values, bool inverse, Meter& meter) {
    for (std::size_t xz = 0; xz < own_x_ * p_.nz; ++xz) {
      along_y_.apply(&values[xz * p_.ny], 1, inverse);
      count_line(meter);
    }
  }

  void count_line(Meter& meter) {
    if (++lines_ % kLinesPerTick == 0) meter.tick();
  }

  void exchange_all(const std::vector<Complex>& out, std::vector<Complex>& in) {
    network_.all_to_all(std::as_bytes(std::span(out)), part_bytes_,
                        std::as_writable_bytes(std::span(in)), part_bytes_);
  }

  Complex checksum() {
    std::array<double, 2> sum{};
    for (std::size_t j = 1; j <= kSamples; ++j) {
      const std::size_t x = j % p_.nx;
      const std::size_t y = 3 * j % p_.ny;
      const std::size_t z = 5 * j % p_.nz;
      if (y / own_y_ != network_.rank()) continue;
      const Complex value = space_[(y % own_y_ * p_.nz + z) * p_.nx + x];
      sum[0] += value.real();
      sum[1] += value.imag();
    }
    network_.sum(sum);
    const auto points = static_cast<double>(p_.points());
    return {sum[0] / points, sum[1] / points};
  }

  Problem p_;
  Communicator& network_;
  std::size_t own_x_, own_y_;  // number of x and of y that this rank has
  Transform along_x_, along_y_, along_z_;
  std::vector<Complex> space_;               // [y][z][x], own y
  std::vector<Complex> spectrum_, decayed_;  // [x][z][y], own x
  std::vector<Complex> packed_;
  std::vector<double> decay_;  // as spectrum_
  std::vector<std::size_t> part_bytes_;
  std::array<Complex, kIterations> sums_{};
  std::size_t lines_ = 0;  // transformed so far
};

}  // namespace

std::unique_ptr<Kernel> make_ft(char size, Communicator& network) {
  auto problem = ft_problem_of(size);
  return problem ? std::make_unique<Ft>(std::move(*problem), network) : nullptr;
}

}  // namespace score::npb
