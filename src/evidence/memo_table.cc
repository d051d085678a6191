#include "evidence/memo_table.h"

#include <algorithm>
#include <cstring>

#include "evidence/trace_builder.h"

namespace oomscope {

void MemoTable::reserve(size_t count) { entries_.reserve(count); }

void MemoTable::grow(size_t count) {
  constexpr size_t kStep = 4096;  // zeros are written just ahead of use, while they stay in the cache
  size_t target = count + kStep;
  if (target > entries_.capacity()) reserve(std::max(target, entries_.capacity() * 2));
  const size_t before = entries_.size();
  entries_.resize(target);  // writes nothing: see HugePageAllocator
  std::memset(entries_.data() + before, 0, (target - before) * sizeof(uint32_t));
}

}  // namespace oomscope
