// Would this recording have completed with expandable segments in so many MiB?
//
//     ask_the_engine oom.pickle 6406
#include <cstdio>
#include <cstdlib>

#include "oomscope/oomscope.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SNAPSHOT MIB\n", argv[0]);
    return 2;
  }
  const int64_t cap = std::strtoll(argv[2], nullptr, 10) << 20;
  const auto answer = oomscope::api::replay(argv[1], {.conf = "expandable_segments:True", .cap_bytes = cap});
  if (!answer.status.ok()) {
    std::fprintf(stderr, "%s: %s\n", answer.status.where.c_str(), answer.status.what.c_str());
    return 1;
  }
  std::printf("%s, %lld MiB reserved\n", answer.completed ? "completes" : "fails",
              static_cast<long long>(answer.peak_reserved >> 20));
  return 0;
}
