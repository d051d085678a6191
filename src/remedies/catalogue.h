// Every remedy, one a file of its name. remedies.cc lists them.
#pragma once

#include "remedies/remedy.h"

namespace oomscope {

[[nodiscard]] Remedy allocator_setting();
[[nodiscard]] Remedy backward_each_part();
[[nodiscard]] Remedy bucket_view();
[[nodiscard]] Remedy check_data();
[[nodiscard]] Remedy check_disk();
[[nodiscard]] Remedy check_indices();
[[nodiscard]] Remedy check_launch();
[[nodiscard]] Remedy checkpointing();
[[nodiscard]] Remedy chunked_loss();
[[nodiscard]] Remedy clear_traceback();
[[nodiscard]] Remedy copy_on_cpu();
[[nodiscard]] Remedy delete_references();
[[nodiscard]] Remedy detach();
[[nodiscard]] Remedy distributed_data_parallel();
[[nodiscard]] Remedy fewer_workers();
[[nodiscard]] Remedy free_other_processes();
[[nodiscard]] Remedy fused_attention();
[[nodiscard]] Remedy fused_optimizer();
[[nodiscard]] Remedy gradient_accumulation();
[[nodiscard]] Remedy group_small_blocks();
[[nodiscard]] Remedy inference_mode();
[[nodiscard]] Remedy larger_gpu();
[[nodiscard]] Remedy larger_heap();
[[nodiscard]] Remedy larger_shm();
[[nodiscard]] Remedy lazy_modules();
[[nodiscard]] Remedy less_prefetch();
[[nodiscard]] Remedy lighter_optimizer();
[[nodiscard]] Remedy load_on_cpu();
[[nodiscard]] Remedy loss_item();
[[nodiscard]] Remedy lower_limit();
[[nodiscard]] Remedy match_versions();
[[nodiscard]] Remedy memory_mapped_data();
[[nodiscard]] Remedy mixed_precision();
[[nodiscard]] Remedy model_parallel();
[[nodiscard]] Remedy more_host_memory();
[[nodiscard]] Remedy mps_watermark();
[[nodiscard]] Remedy need_weights_false();
[[nodiscard]] Remedy no_grad();
[[nodiscard]] Remedy no_pinning();
[[nodiscard]] Remedy offload();
[[nodiscard]] Remedy other_gpu();
[[nodiscard]] Remedy pool_limit();
[[nodiscard]] Remedy process_in_chunks();
[[nodiscard]] Remedy quantised_loading();
[[nodiscard]] Remedy raise_cgroup_limit();
[[nodiscard]] Remedy raise_fraction();
[[nodiscard]] Remedy raise_map_count();
[[nodiscard]] Remedy raise_page_file();
[[nodiscard]] Remedy raise_ulimit();
[[nodiscard]] Remedy release_cache();
[[nodiscard]] Remedy report_more();
[[nodiscard]] Remedy results_to_cpu();
[[nodiscard]] Remedy return_freed_host_memory();
[[nodiscard]] Remedy reuse_buffers();
[[nodiscard]] Remedy set_to_none();
[[nodiscard]] Remedy sharded_saving();
[[nodiscard]] Remedy sharding();
[[nodiscard]] Remedy share_card();
[[nodiscard]] Remedy sharing_strategy();
[[nodiscard]] Remedy smaller_batch();
[[nodiscard]] Remedy smaller_input();
[[nodiscard]] Remedy smaller_kv_cache();
[[nodiscard]] Remedy smaller_model();
[[nodiscard]] Remedy smaller_workspace();
[[nodiscard]] Remedy static_shapes();
[[nodiscard]] Remedy wait_for_stream();

}  // namespace oomscope
