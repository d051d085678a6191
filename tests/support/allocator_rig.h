// Rig: an allocator over a FakeDevice, with short words for what the engine's tests do all the time.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "caching/allocator.h"
#include "support/fake_device.h"

namespace oomscope {

inline constexpr int64_t kMiB = int64_t{1} << 20;

inline RuleSet rules_named(std::string_view name) {
  const std::optional<RuleSet> rules = find_rule_set(name);
  EXPECT_TRUE(rules.has_value()) << name;
  return rules.value_or(default_rule_set());
}

struct RigOptions {
  AllocatorSettings settings = {};
  RuleSet rules = default_rule_set();
  std::optional<int64_t> limit = std::nullopt;
  int64_t total = int64_t{1} << 40;
};

struct Rig {
  FakeDevice device;
  CachingAllocator allocator;

  explicit Rig(const RigOptions& options = {}) : allocator(options.rules, options.settings, device) {
    device.total = options.total;
    allocator.set_memory_limit(options.limit);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig() { EXPECT_EQ(allocator.check_invariants(), ""); }

  // A block that must be there.
  Block* get(int64_t bytes, uint64_t stream = 0) {
    Block* block = allocator.malloc(bytes, StreamId{stream});
    EXPECT_NE(block, nullptr) << bytes << " bytes";
    EXPECT_EQ(allocator.check_invariants(), "");
    return block;
  }
  Block* get_in(PoolId pool, int64_t bytes, uint64_t stream = 0) {
    Block* block = allocator.malloc_in_pool(bytes, StreamId{stream}, pool);
    EXPECT_NE(block, nullptr) << bytes << " bytes";
    return block;
  }
  // A request that must fail.
  Refusal refuse(int64_t bytes, uint64_t stream = 0) {
    EXPECT_EQ(allocator.malloc(bytes, StreamId{stream}), nullptr);
    EXPECT_EQ(allocator.check_invariants(), "");
    return allocator.refusal();
  }
  void free(Block* block) {
    allocator.free(block);
    EXPECT_EQ(allocator.check_invariants(), "");
  }
  [[nodiscard]] const Stats& stats() const { return allocator.stats(); }
  [[nodiscard]] int64_t reserved() const { return allocator.reserved_bytes(); }
};

inline DriverCall allocated(uint64_t address, int64_t size) { return {DriverCallKind::allocate, address, size}; }
inline DriverCall released(uint64_t address, int64_t size) { return {DriverCallKind::release, address, size}; }
inline DriverCall mapped(uint64_t address, int64_t size) { return {DriverCallKind::map, address, size}; }
inline DriverCall unmapped(uint64_t address, int64_t size) { return {DriverCallKind::unmap, address, size}; }
inline DriverCall refused(int64_t size) { return {DriverCallKind::refused, 0, size}; }
using DriverCalls = std::vector<DriverCall>;

}  // namespace oomscope
