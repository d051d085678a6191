#include "evidence/snapshot_words.h"

#include <array>

namespace oomscope {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(Word::end_of_words)> kTexts = {
    "",
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "host_segments",
    "device",
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "stream",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "frames",
    "blocks",
    "size",
    "state",
    "history",
    "addr",
    "real_size",
    "cpp_frames",
    "action",
    "device_free",
    "time_us",
    "compile_context",
    "user_metadata",
    "pool_id",
    "internal_metadata",
    "name",
    "filename",
    "line",
    "stage",
    "PYTORCH_CUDA_ALLOC_CONF",
    "max_split_size",
    "garbage_collection_threshold",
    "expandable_segments",
    "roundup_power2_divisions",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
    "annotate",
    "active_allocated",
    "active_pending_free",
    "active_awaiting_free",
    "inactive",
    "small",
    "large",
    "START",
    "END",
};

}  // namespace

void intern_words(StringTable& strings) {
  for (std::string_view text : kTexts) (void)strings.intern(text);
}

}  // namespace oomscope
