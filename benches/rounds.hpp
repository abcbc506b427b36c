// Interleaved rounds: candidates are measured in turn, so that what the machine does meanwhile meets them all alike.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

// Something to measure: `run` does it so many times.
struct Candidate {
  const char *name;
  void (*run)(unsigned times);
  unsigned times;
  // Index of the candidate that it is compared with, and the highest ratio that is good; 0: none.
  unsigned base;
  double bar;
  // Nanoseconds each time, one entry a round.
  std::vector<double> rounds;
};

std::uint64_t now_ns();

// Measures every candidate once a round, each round beginning with another one.
void measure(std::vector<Candidate> &candidates, unsigned rounds);

double median(std::vector<double> values);

// The median over the rounds of one candidate's time by its base's time in the same round.
double ratio(const std::vector<Candidate> &candidates, const Candidate &of);

// Prints the table; gives whether all bars are kept.
bool print(const std::vector<Candidate> &candidates);

}  // namespace bench
