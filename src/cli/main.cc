#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/program.h"

#ifndef OOMSCOPE_VERSION
#define OOMSCOPE_VERSION "0"
#endif

int main(int argc, char** argv) {
  // We throw nothing; what arrives here is the library's: mostly std::bad_alloc.
  try {
    return oomscope::run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), OOMSCOPE_VERSION);
  } catch (const std::bad_alloc& error) {
    std::fprintf(stderr, "oomscope: memory: %s\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oomscope: internal error: %s\n  please report it, with the command\n", error.what());
    return 1;
  }
}
