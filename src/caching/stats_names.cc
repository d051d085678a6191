#include "caching/stats_names.h"

namespace oomscope {
namespace {

using Flat = std::vector<std::pair<std::string, int64_t>>;

void add(Flat& flat, const std::string& name, const Stat& stat) {
  flat.emplace_back(name + ".current", stat.current);
  flat.emplace_back(name + ".peak", stat.peak);
  flat.emplace_back(name + ".allocated", stat.allocated());
  flat.emplace_back(name + ".freed", stat.freed);
}

void add(Flat& flat, const std::string& name, const StatArray& stat) {
  add(flat, name + ".all", stat.all());
  add(flat, name + ".small_pool", stat.small());
  add(flat, name + ".large_pool", stat.large());
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> flat_stats(const Stats& stats, const AllocatorSettings& settings) {
  Flat flat;
  add(flat, "allocation", stats.allocation);
  add(flat, "segment", stats.segment);
  add(flat, "active", stats.active);
  add(flat, "inactive_split", stats.inactive_split);
  add(flat, "allocated_bytes", stats.allocated_bytes);
  add(flat, "reserved_bytes", stats.reserved_bytes);
  add(flat, "active_bytes", stats.active_bytes);
  add(flat, "inactive_split_bytes", stats.inactive_split_bytes);
  add(flat, "requested_bytes", stats.requested_bytes);
  add(flat, "oversize_allocations", stats.oversize_allocations.value());
  add(flat, "oversize_segments", stats.oversize_segments.value());
  flat.emplace_back("num_alloc_retries", stats.num_alloc_retries);
  flat.emplace_back("num_ooms", stats.num_ooms);
  flat.emplace_back("num_oom_rejections", stats.num_oom_rejections);
  flat.emplace_back("num_sync_all_streams", stats.num_sync_all_streams);
  flat.emplace_back("num_device_alloc", stats.num_device_alloc);
  flat.emplace_back("num_device_free", stats.num_device_free);
  flat.emplace_back("max_split_size",
                    settings.max_split_size_bytes == kUnlimitedBytes ? -1 : settings.max_split_size_bytes);
  return flat;
}

}  // namespace oomscope
