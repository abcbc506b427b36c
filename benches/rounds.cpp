#include "rounds.hpp"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

namespace bench {

namespace {

long preemptions() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// One measurement in which nobody else took the processor; after some tries, the quickest.
double undisturbed(const Candidate &candidate) {
  constexpr unsigned kTries = 12;
  double best = 1e300;
  for (unsigned i = 0; i < kTries; i++) {
    long before = preemptions();
    std::uint64_t begin = now_ns();
    candidate.run(candidate.times);
    double each = static_cast<double>(now_ns() - begin) / candidate.times;
    if (preemptions() == before) {
      return each;
    }
    best = std::min(best, each);
  }
  return best;
}

}  // namespace

std::uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u + static_cast<std::uint64_t>(time.tv_nsec);
}

void measure(std::vector<Candidate> &candidates, unsigned rounds) {
  for (Candidate &candidate : candidates) {
    candidate.run(candidate.times);  // warm
  }
  for (unsigned round = 0; round < rounds; round++) {
    for (std::size_t i = 0; i < candidates.size(); i++) {
      Candidate &candidate = candidates[(i + round) % candidates.size()];
      candidate.rounds.push_back(undisturbed(candidate));
    }
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double ratio(const std::vector<Candidate> &candidates, const Candidate &of) {
  std::vector<double> ratios;
  // Both ran in the same round, though not in the same order every time.
  for (std::size_t i = 0; i < of.rounds.size(); i++) {
    ratios.push_back(of.rounds[i] / candidates[of.base].rounds[i]);
  }
  return median(ratios);
}

bool print(const std::vector<Candidate> &candidates) {
  bool kept = true;
  std::printf("%-58s %10s %7s  %s\n", "", "median ns", "ratio", "bar");
  for (const Candidate &candidate : candidates) {
    double times = ratio(candidates, candidate);
    std::printf("%-58s %10.1f %7.3f", candidate.name, median(candidate.rounds), times);
    if (candidate.bar > 0) {
      std::printf("  %.2f%s", candidate.bar, times <= candidate.bar ? "" : "  MISSED");
      kept &= times <= candidate.bar;
    }
    std::printf("\n");
  }
  return kept;
}

}  // namespace bench
