// Shows that exceptions, threads and std::random_device work in a program linked as the release program is, with
// cmake/glibc_floor.c in place of glibc's newer functions.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

int thrown_through(int depth) {
  if (depth == 0) throw std::runtime_error("from the bottom");
  const std::string keeps_a_cleanup_on_the_stack(64, 'x');
  return thrown_through(depth - 1) + static_cast<int>(keeps_a_cleanup_on_the_stack.size());
}

bool catches() {
  try {
    thrown_through(20);
  } catch (const std::exception& error) {
    return std::string(error.what()) == "from the bottom";
  }
  return false;
}

}  // namespace

int main() {
  bool in_thread = false;
  std::thread([&in_thread] { in_thread = catches(); }).join();
  std::random_device random;
  const bool differs = random() != random() || random() != random();
  // A shared library (libstdc++ is not one here) in the middle: qsort calls back into us, and we throw through it.
  bool through_libc = false;
  try {
    int numbers[] = {3, 1, 2};
    std::qsort(numbers, 3, sizeof(int), [](const void*, const void*) -> int { throw 7; });
  } catch (int value) {
    through_libc = value == 7;
  }
  const bool ok = catches() && in_thread && differs && through_libc;
  std::printf("%s\n", ok ? "ok" : "failed");
  return ok ? 0 : 1;
}
