// Drives a fuzz target without libFuzzer: replays a corpus, then mutations of it for some seconds.
//
// libFuzzer comes with clang alone. This driver needs any compiler, so that every `make test` runs the targets under
// the sanitizers. It knows nothing of coverage, so it finds shallow mistakes and no deep ones; `make fuzz` is for
// those.
//
//   fuzz_NAME [--seconds=10] [--seed=1] PATH...     a PATH is a file or a folder, searched for files
//
// Each mutated input is written to crash-NAME in the current folder before it is tried, and removed at the end: after a
// crash it is the input that crashed. Replay it by naming it as the PATH, with --seconds=0.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;
using Random = std::mt19937_64;
constexpr size_t kMaxMutatedBytes = 64 * 1024;  // of larger inputs a piece from the start is mutated

std::vector<std::filesystem::path> files_under(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_regular_file(path)) files.push_back(path);
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

size_t below(Random& random, size_t limit) { return static_cast<size_t>(random() % limit); }

// Inputs that readers get wrong: lengths at the edges of their types.
void write_edge_value(Bytes& bytes, Random& random) {
  constexpr uint64_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
  const uint64_t value = kEdges[below(random, std::size(kEdges))];
  const size_t width = size_t{1} << below(random, 4);
  if (bytes.size() < width) return;
  std::memcpy(bytes.data() + below(random, bytes.size() - width + 1), &value, width);
}

void mutate_once(Bytes& bytes, const Bytes& other, Random& random) {
  if (bytes.empty()) bytes.push_back(0);
  const size_t at = below(random, bytes.size());
  const size_t length = 1 + below(random, std::min<size_t>(64, bytes.size() - at));
  const auto from = bytes.begin() + static_cast<ptrdiff_t>(at);
  const auto to = from + static_cast<ptrdiff_t>(length);
  switch (below(random, 6)) {
    case 0: bytes[at] ^= static_cast<uint8_t>(1u << below(random, 8)); break;
    case 1: bytes[at] = static_cast<uint8_t>(random()); break;
    case 2: write_edge_value(bytes, random); break;
    case 3: bytes.erase(from, to); break;
    case 4: {  // a piece said twice
      const Bytes piece(from, to);
      bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(below(random, bytes.size())), piece.begin(), piece.end());
      break;
    }
    case 5:  // the end of another input
      if (other.size() > at) {
        bytes.resize(at);
        bytes.insert(bytes.end(), other.begin() + static_cast<ptrdiff_t>(at), other.end());
      }
      break;
  }
}

void mutate(const std::vector<Bytes>& corpus, int seconds, uint64_t seed, const std::string& name) {
  const std::string crash_file = "crash-" + name;
  Random random(seed);
  uint64_t runs = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    Bytes bytes = corpus[below(random, corpus.size())];
    const Bytes& other = corpus[below(random, corpus.size())];
    for (size_t i = 0, count = 1 + below(random, 4); i < count; ++i) mutate_once(bytes, other, random);
    bytes.resize(std::min(bytes.size(), kMaxMutatedBytes));
    std::ofstream(crash_file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++runs;
  }
  std::filesystem::remove(crash_file);
  std::printf("%s: %llu mutated inputs in %d s, seed %llu\n", name.c_str(), static_cast<unsigned long long>(runs),
              seconds, static_cast<unsigned long long>(seed));
}

}  // namespace

int main(int argc, char** argv) {
  int seconds = 0;
  uint64_t seed = 1;
  std::vector<Bytes> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--seconds=", 0) == 0) {
      seconds = std::atoi(argument.c_str() + 10);
    } else if (argument.rfind("--seed=", 0) == 0) {
      seed = std::strtoull(argument.c_str() + 7, nullptr, 10);
    } else {
      for (const std::filesystem::path& file : files_under(argument)) corpus.push_back(read_file(file));
    }
  }
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  LLVMFuzzerTestOneInput(nullptr, 0);
  for (const Bytes& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  std::printf("%s: %zu inputs of the corpus\n", name.c_str(), corpus.size());
  for (Bytes& input : corpus) input.resize(std::min(input.size(), kMaxMutatedBytes));
  if (corpus.empty()) corpus.push_back({0});
  if (seconds > 0) mutate(corpus, seconds, seed, name);
  return 0;
}
