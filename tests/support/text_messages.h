// Messages for tests of the text reader: one for each template, with invented figures, and the allocator's newest.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/text/text_reader.h"

namespace oomscope {

inline constexpr double kKiB = 1024;
inline constexpr double kMiB = 1024 * kKiB;
inline constexpr double kGiB = 1024 * kMiB;

inline TextMessage only(std::string_view text) {
  const TextEvidence evidence = read_text(text, "test");
  EXPECT_FALSE(evidence.messages.empty()) << text;
  return evidence.messages.empty() ? TextMessage{} : evidence.messages.front();
}

inline double figure(const TextMessage& message, Figure which) { return message.figures[which].value_or(-1); }

struct Example {
  std::string_view id;
  std::string_view text;
};

// One for each template, so that a new row without an example fails.
inline const std::vector<Example> kExamples = {
    {"cuda.oom-huge", "RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory."},
    {"cuda.oom-policy",
     "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction "
     "limit. Requested size: 3.00 GiB"},
    {"cuda.oom",
     "CUDA out of memory. Tried to allocate 5.00 MiB (GPU 2; 7.00 GiB total capacity; 6.00 GiB already allocated; "
     "1.00 MiB free; 6.50 GiB reserved in total by PyTorch)"},
    {"cuda.oom-headless", "Tried to allocate 5.00 MiB (GPU 2; 7.00 GiB total capacity; 6.00 GiB already allocated)"},
    {"cuda.async",
     "Allocation on device 1 would exceed allowed memory. (out of memory)\nCurrently allocated     : 3.00 GiB\n"
     "Requested               : 7.00 MiB\nDevice limit            : 5.00 GiB\nFree (according to CUDA): 9.00 KiB\n"
     "PyTorch limit (set by user-supplied memory fraction)\n                        : 4.00 GiB"},
    {"cuda.async-cut", "torch.OutOfMemoryError: Allocation on device"},
    {"cuda.oom-cut", "worker 3 says: CUDA out of memory."},
    {"cuda.oom-type", "torch.OutOfMemoryError"},
    {"thc.host", "cuda runtime error (2) : out of memory at aten/src/THC/THCCachingHostAllocator.cpp:71"},
    {"thc.error", "cuda runtime error (2) : out of memory at /src/THC/generic/THCStorage.cu:12"},
    {"thc.check", "THCudaCheck FAIL file=/src/THC/THCGeneral.c line=7 error=2 : out of memory"},
    {"cuda.error", "RuntimeError: CUDA error: out of memory"},
    {"cuda.driver", "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"},
    {"cuda.nvml-assert", "RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"x.cpp\":1"},
    {"mxnet.cublas", "Check failed: err == CUBLAS_STATUS_SUCCESS (3 vs. 0) : Create cublas handle failed"},
    {"loader.map", "ImportError: libx.so.12: failed to map segment from shared object: Cannot allocate memory"},
    {"loader.static-tls", "OSError: libgomp.so.1: cannot allocate memory in static TLS block"},
    {"cublas.alloc", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"},
    {"cudnn.alloc", "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"},
    {"cudnn.no-engine", "RuntimeError: GET was unable to find an engine to execute this computation"},
    {"culib.alloc", "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED"},
    {"nccl.calloc", "h:1:2 [0] NCCL WARN Failed to CUDA calloc 4096 bytes"},
    {"nccl.oom", "h:1:2 [0] include/alloc.h:1 NCCL WARN Cuda failure 2 'out of memory'"},
    {"bitsandbytes.oom", "Error out of memory at line 3 in file /src/csrc/ops.cu"},
    {"vllm.no-blocks", "ValueError: No available memory for the cache blocks."},
    {"vllm.startup-free",
     "ValueError: Free memory on device (1.50/8.00 GiB) on startup is less than desired GPU memory utilization (0.9, "
     "7.20 GiB)."},
    {"vllm.kv-cache", "(3.00 GiB KV cache is needed, which is larger than the available KV cache memory (2.00 GiB)."},
    {"vllm.max-len",
     "The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in KV cache"},
    {"weights.not-enough",
     "Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized "
     "model."},
    {"engine.not-enough", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."},
    {"mps.oom",
     "MPS backend out of memory (MPS allocated: 3.00 GB, other allocations: 2.00 KB, max allowed: 4.00 GB). Tried to "
     "allocate 1.50 GB on private pool."},
    {"mps.cut", "RuntimeError: MPS backend out of memory"},
    {"mps.buffer", "RuntimeError: Invalid buffer size: 20.00 GB"},
    {"xpu.block-limit",
     "Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate 6.00 GiB (GPU  0; "
     "15.00 GiB total capacity)"},
    {"xpu.runtime", "Native API returns: UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"},
    {"accelerator.oom",
     "NPU out of memory. Tried to allocate 2.00 GiB (NPU 1; 8.00 GiB total capacity; 6.00 GiB already allocated; 5.00 "
     "GiB current active; 1.00 GiB free; 7.00 GiB reserved in total by PyTorch)"},
    {"jax.exhausted", "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12345 bytes."},
    {"xla.exhausted", "RESOURCE_EXHAUSTED: Attempting to reserve 1G"},
    {"tf.tensor", "OOM when allocating tensor with shape[1,2] and type float"},
    {"tf.bfc", "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB"},
    {"tf.driver", "failed to allocate 3.00M (3145728 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"},
    {"xla.request", "Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 0"},
    {"paddle.oom",
     "Out of memory error on GPU 0. Cannot allocate 2.000000GB memory on GPU 0, 6.000000GB memory has been allocated "
     "and available memory is only 1.000000GB."},
    {"mxnet.malloc", "src/storage/./pooled_storage_manager.h:143: cudaMalloc failed: out of memory"},
    {"cuda.malloc", "cudaMalloc failed: out of memory"},
    {"cupy.oom", "Out of memory allocating 1,024 bytes (allocated so far: 2,048 bytes)."},
    {"rmm.oom", "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: x.hpp:7: cudaErrorMemoryAllocation"},
    {"rmm.oom", "std::bad_alloc: out_of_memory: CUDA error at: x.hpp"},
    {"cpu.allocator", "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4321 bytes. Error code 12"},
    {"th.buy-ram", "$ Torch: not enough memory: you tried to allocate 3GB. Buy new RAM!"},
    {"mmap.count", "unable to mmap 48 bytes from file </torch_1_2>: Cannot allocate memory (12)"},
    {"mmap.memory", "unable to mmap memory: you tried to mmap 2GB."},
    {"numpy.array", "MemoryError: Unable to allocate 3.00 GiB for an array with shape (1, 2) and data type int8"},
    {"numpy.plain", "Unable to allocate array with shape (3, 4)"},
    {"errno.12", "OSError: [Errno 12] Cannot allocate memory"},
    {"python.memoryerror", "MemoryError"},
    {"cpp.bad-alloc", "  what():  std::bad_alloc"},
    {"opencv.memory", "error: (-4:Insufficient memory) Failed to allocate 777 bytes"},
    {"rust.memory", "memory allocation of 4096 bytes failed"},
    {"arrow.malloc", "pyarrow.lib.ArrowMemoryError: malloc of size 4096 failed"},
    {"pinned.host", "cudaHostAlloc(&p, n) failed: out of memory"},
    {"tcmalloc.large", "tcmalloc: large alloc 4096 bytes == 0x1"},
    {"worker.bus", "DataLoader worker (pid 7) is killed by signal: Bus error."},
    {"worker.killed", "DataLoader worker (pid 7) is killed by signal: Killed."},
    {"worker.terminated", "DataLoader worker (pid 7) is killed by signal: Terminated."},
    {"worker.crashed", "DataLoader worker (pid 7) is killed by signal: Segmentation fault."},
    {"worker.exited", "RuntimeError: DataLoader worker (pid(s) 7, 8) exited unexpectedly"},
    {"shm.bus", "ERROR: Unexpected bus error encountered in worker. This might be caused by"},
    {"shm.bus-plain", "Signal 7 (SIGBUS) received by PID 3"},
    {"shm.bus-shell", "Bus error"},
    {"shm.write", "unable to write to file </torch_1_2>"},
    {"shm.allocate", "unable to allocate shared memory(shm) for file </torch_1_2>: Success (0)"},
    {"shm.nccl", "Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888)"},
    {"shm.nccl-space", "failed to extend /dev/shm/nccl-abc to 33 bytes, error: No space left on device (28)"},
    {"shm.dev", "OSError: [Errno 28] No space left on device: '/dev/shm/psm_1'"},
    {"errno.28", "OSError: [Errno 28] No space left on device"},
    {"fd.ancdata", "RuntimeError: received 0 items of ancdata"},
    {"fd.many", "OSError: [Errno 24] Too many open files"},
    {"fd.shm-object", "unable to open shared memory object </torch_1_2> in read-write mode"},
    {"windows.commit", "OSError: [WinError 1455] The paging file is too small"},
    {"windows.resources", "OSError: [WinError 1450] Insufficient system resources"},
    {"kernel.memcg",
     "Memory cgroup out of memory: Killed process 5 (python) total-vm:40kB, anon-rss:30kB, file-rss:20kB, "
     "shmem-rss:10kB, UID:0"},
    {"kernel.constraint-memcg", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/job,task=python"},
    {"kernel.constraint", "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python"},
    {"kernel.constraint-nodes", "oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0,task=python"},
    {"kernel.global", "Out of memory: Kill process 5 (python) score 9 or sacrifice child"},
    {"kernel.killed", "Killed process 5 (python), UID 0, total-vm:40kB, anon-rss:30kB, file-rss:20kB"},
    {"kernel.invoked", "python invoked oom-killer: gfp_mask=0x1"},
    {"kernel.reaper", "oom_reaper: reaped process 5 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"},
    {"ggml.pinned", "failed to allocate 512.00 MiB of pinned memory: out of memory"},
    {"ggml.cache", "failed to allocate buffer for kv cache"},
    {"gpu.error-other", "CUDA error: some failure of tomorrow was met"},
    {"gpu.error-unknown", "RuntimeError: CUDA unknown error - this may be due to an environment"},
    {"gpu.xid", "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python, MMU Fault"},
    {"gpu.driver-old", "RuntimeError: No CUDA GPUs are available"},
    {"process.crashed", "double free or corruption (!prev)"},
    {"engine.profiling", "AssertionError: Error in memory profiling. Initial free memory 3 GiB"},
    {"launcher.kill-9", "job.service: Main process exited, code=killed, status=9/KILL"},
    {"launcher.kill-9", "INFO exited: job (terminated by SIGKILL; not expected)"},
    {"batch.memory", "OutOfMemoryError: Container killed due to memory usage"},
    {"pool.abrupt", "RuntimeError: One of the subprocesses has abruptly died during map operation."},
    {"kernel.usage", "memory: usage 100kB, limit 100kB, failcnt 3"},
    {"earlyoom", "sending SIGTERM to process 9 uid 0 \"python\": oom_score 800, VmRSS 700 MiB"},
    {"pbs.memory", "=>> PBS: job killed: vmem 900kb exceeded limit 800kb"},
    {"sge.memory", "job 7 exceeds job hard limit \"h_vmem\" of queue \"a\" (9.00000 > limit:8.00000)"},
    {"condor.memory", "Job has gone over memory limit of 8 megabytes."},
    {"yarn.memory", "is running beyond physical memory limits. Current usage: 2.1 GB of 2 GB physical memory used"},
    {"job.used", "Memory Utilized: 8.00 GB"},
    {"job.limit", "Memory Efficiency: 99.00% of 8.00 GB"},
    {"job.mem-limit", " MEMLIMIT\n     16 G"},
    {"systemd-oomd", "session.scope: systemd-oomd killed 3 process(es) in this unit."},
    {"slurm.detected", "slurmstepd: error: Detected 2 oom_kill events in StepId=5.0."},
    {"slurm.srun", "srun: error: node7: task 0: Out Of Memory"},
    {"slurm.state", "77.batch  python  OUT_OF_MEMORY  0:125"},
    {"slurm.exceeded", "slurmstepd: error: Exceeded job memory limit"},
    {"batch.memory", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit."},
    {"pod.oomkilled", "Reason:       OOMKilled"},
    {"pod.oomkilled", "train-0   0/1   OOMKilled   3 (2m ago)   9m"},
    {"pod.oomkilled", "\"OOMKilled\": true,"},
    {"pod.request", "killed by docker due to it exceeded the request memory"},
    {"pod.evicted", "The node was low on resource: memory."},
    {"pod.limit", "    Limits:\n      cpu:     4\n      memory:  16Gi\n    Requests:"},
    {"container.137", "command terminated with exit code 137"},
    {"launcher.kill-9", "failed (exitcode: -9) local_rank: 1 (pid: 5) of binary: python"},
    {"launcher.bus-7", "failed (exitcode: -7) local_rank: 1 (pid: 5) of binary: python"},
    {"launcher.cleaning", "Killing subprocess 55"},
    {"pool.abrupt", "A process in the process pool was terminated abruptly while the future was running"},
    {"shell.killed", "run.sh: line 3:   44 Killed                  python train.py"},
    {"ray.monitor", "2 Workers (tasks / actors) killed due to memory pressure (OOM)"},
    {"ray.usage", "Memory on the node (IP: 10.0.0.9) where the task was running was 9.00GB / 10.00GB (0.9)"},
    {"notebook.ram", "Your session crashed after using all available RAM."},
    {"notebook.died", "The kernel appears to have died. It will restart automatically."},
    {"notebook.died", "Dead kernel"},
    {"notebook.died", "Kernel died, restarting"},
    {"notebook.died", "nbclient.exceptions.DeadKernelError: Kernel died"},
    {"notebook.died", "The Kernel crashed while executing code in the current cell or a previous cell."},
    {"notebook.died", "[I 12:00:01.123 LabApp] AsyncIOLoopKernelRestarter: restarting kernel (1/5), keep random ports"},
    {"notebook.died", "服务似乎挂掉了，但是会立刻重启的"},
    {"notebook.ram", "Your session crashed after using all RAM."},
    {"notebook.died", "The kernel for train.ipynb appears to have died. It will restart automatically."},
    {"notebook.restarted", "kernel 01234567-89ab-cdef-0123-456789abcdef restarted"},
    {"deepspeed.host", "CPU Virtual Memory:  used = 7.5 GB, percent = 24.0%"},
    {"deepspeed.gpu", "MA 3.5 GB         Max_MA 4.0 GB         CA 5.5 GB         Max_CA 6 GB"},
    {"megatron.gpu", "memory (MB) | allocated: 100.0 | max allocated: 200.0 | reserved: 300.0 | max reserved: 400.0"},
    {"printed.allocated", "memory allocated: 3.00 GiB"},
    {"printed.allocated-size", "step 7 mem allocated 3.5 GB"},
    {"printed.reserved", "memory_reserved: 4.00 GiB"},
    {"gpu.assertion", "/src/Indexing.cu:3: kernel: block: [1,0,0] Assertion `i < n` failed."},
    {"gpu.assert-triggered", "CUDA error: device-side assert triggered"},
    {"gpu.illegal-access", "CUDA error: an illegal memory access was encountered"},
    {"gpu.error", "CUDA error: unspecified launch failure"},
    {"gpu.library", "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling"},
    {"gpu.driver-old", "CUDA driver version is insufficient for CUDA runtime version"},
    {"index.range", "IndexError: index out of range in self"},
    {"triton.shared", "out of resource: shared memory, Required: 9, Hardware limit: 8."},
    {"process.crashed", "Segmentation fault (core dumped)"},
    {"collective.timeout", "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"},
    {"collective.error", "NCCL error in: ProcessGroupNCCL.cpp:1, unhandled system error"},
    {"disk.stream", "PytorchStreamWriter failed writing file data/1: file write failed"},
    {"disk.write", "OSError: [Errno 122] Disk quota exceeded"},
    {"ended.time-limit", "*** JOB 5 ON n1 CANCELLED AT 2030-01-02T03:04:05 DUE TO TIME LIMIT ***"},
    {"ended.cancelled", "*** STEP 5.0 ON n1 CANCELLED AT 2030-01-02T03:04:05 ***"},
    {"program.bootstrap",
     "An attempt has been made to start a new process before the current process has finished its bootstrapping "
     "phase."},
    {"worker.caught", "KeyError: Caught KeyError in DataLoader worker process 0."},
    {"launcher.failed", "failed (exitcode: 1) local_rank: 0 (pid: 5) of binary: python"},
    {"launcher.failed", "['python', 't.py'] exits with return code = 1"},
    {"grpc.limit", "RESOURCE_EXHAUSTED: Received message larger than max (5 vs. 4)"},
    {"launcher.kill-9", "Command terminated by signal 9"},
    {"shell.killed", "Killed: 9"},
    {"shell.killed", "/bin/bash: line 1: 12345 Killed: 9               python train.py"},
    {"shell.killed", "[1]+  Killed                  python train.py"},
    {"ended.signal", "SignalException: Process 5 got signal: 1"},
    {"cuda.error-code", "CUDA error 2 at kernels.cu:12: out of memory"},
    {"cuda.init", "Unexpected error from cudaGetDeviceCount(). Error 2: out of memory"},
    {"cuda.thrust", "what():  std::bad_alloc: cudaErrorMemoryAllocation: out of memory"},
    {"caffe.check",
     "[enforce fail at context.cu:3] error == cudaSuccess. 2 vs 0. Error at: context.cu:3: out of memory"},
    {"hsa.resources", "HSA_STATUS_ERROR_OUT_OF_RESOURCES: the runtime failed"},
    {"cuda.told", "Attempting to copy inputs to CPU due to CUDA OOM"},
    {"ggml.device", "allocating 300.50 MiB on device 1: cudaMalloc failed: out of memory"},
    {"ggml.buffer", "failed to allocate CUDA1 buffer of size 4096"},
    {"ggml.runner", "llama runner process has terminated: cudaMalloc failed: out of memory"},
    {"tensorrt.memory", "[E] Error Code 2: OutOfMemory (Requested size was 4096 bytes.)"},
    {"tensorrt.amount", "Requested amount of GPU memory (4096 bytes) could not be allocated."},
    {"faiss.memory",
     "alloc fail type TemporaryMemoryBuffer dev 0 space Device size 4096 bytes (cudaMalloc error out of memory [2])"},
    {"rocblas.alloc", "HIP error: HIPBLAS_STATUS_ALLOC_FAILED"},
    {"tf.library", "InternalError: Blas GEMM launch failed : a.shape=(1, 2)"},
    {"tf.bfc-warning",
     "ran out of memory trying to allocate 3.00GiB with freed_by_count=0. The caller indicates that this is not a "
     "failure"},
    {"tf.async",
     "cuMemAllocAsync failed to allocate 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n Reported by CUDA: Free "
     "memory/Total memory: 100/9000"},
    {"tf.init", "InternalError: CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory"},
    {"tf.context", "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory; total memory reported: 9000"},
    {"tf.copy", "InternalError: Dst tensor is not initialized."},
    {"xla.hbm", "Ran out of memory in memory space hbm. Used 20.5G of 15.5G hbm."},
    {"xla.reserve", "Attempting to reserve 4.5G at the bottom of memory. That was not possible. There are 3.5G free"},
    {"mxnet.check", "Check failed: e == cudaSuccess || e == cudaErrorCudartUnloading CUDA: out of memory"},
    {"onnx.arena",
     "onnxruntime::BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size 4096"},
    {"onnx.limit", "Available memory of 100 is smaller than requested bytes of 4096"},
    {"directml.tensor", "Could not allocate tensor with 4096 bytes. There is not enough GPU video memory available!"},
    {"vulkan.memory", "vk::Device::allocateMemory: ErrorOutOfDeviceMemory"},
    {"ggml.backend", "failed to allocate Vulkan0 buffer of size 4096"},
    {"metal.buffer",
     "[metal::malloc] Attempting to allocate 4096 bytes which is greater than the maximum allowed buffer size of 2048 "
     "bytes."},
    {"metal.command", "(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"},
    {"mps.array", "MPSNDArray error: total bytes of NDArray > 2**32"},
    {"habana.memory", "MODULE:PT_DEVMEM Allocation failed for size::4096"},
    {"ascend.memory", "Failed to allocate memory. Possible Cause: Available memory is insufficient."},
    {"mindspore.memory", "memory isn't enough and alloc failed, kernel name: k, alloc size: 4096B."},
    {"cupy.old", "out of memory to allocate 4096 bytes (total 9000 bytes)"},
    {"cpu.memalign", "posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0"},
    {"paddle.cpu", "Fail to alloc memory of 4096 size, error code is 12."},
    {"ggml.host", "failed to allocate CPU buffer of size 4096"},
    {"ollama.system", "model requires more system memory (5.5 GiB) than is available (3.5 GiB)"},
    {"runtime.heap", "java.lang.OutOfMemoryError: Java heap space"},
    {"go.memory", "fatal error: runtime: out of memory"},
    {"compiler.memory", "cc1plus: out of memory allocating 4096 bytes after a total of 9000 bytes"},
    {"ibv.memory", "Call to ibv_create_cq failed with error Cannot allocate memory"},
    {"errno.12-plain", "worker: Cannot allocate memory"},
    {"tf.pinned", "could not allocate pinned host memory of size: 4096"},
    {"worker.signal", "ERROR: Unexpected segmentation fault encountered in worker."},
    {"worker.pin", "RuntimeError: Pin memory thread exited unexpectedly"},
    {"shm.nccl-extend", "Error: failed to extend /dev/shm/nccl-abc to 33 bytes"},
    {"shm.nccl-call", "NCCL WARN Call to posix_fallocate failed : No space left on device"},
    {"shm.storage", "It may be caused by insufficient shared storage space."},
    {"ray.store", "ray.exceptions.ObjectStoreFullError: failed to put"},
    {"kernel.limit", "Task in /docker/abc killed as a result of limit of /docker/abc"},
    {"systemd.oom-kill", "job.service: Failed with result 'oom-kill'."},
    {"compiler.killed", "c++: fatal error: Killed signal terminated program cc1plus"},
    {"slurm.killed", "srun: error: node7: task 3: Killed"},
    {"cloud.limit", "Memory limit of 512 MiB exceeded with 530 MiB used."},
    {"ray.worker-died", "(1) The process is killed by SIGKILL by OOM killer due to high memory usage."},
    {"dask.nanny", "Worker tcp://h:1 (pid=5) exceeded 95% memory budget. Restarting..."},
    {"gpu.fault", "Memory access fault by GPU node-1 (Agent handle: 0x1)"},
    {"program.import", "ImportError: no such thing"},
    {"program.shapes", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)"},
    {"program.threads", "RuntimeError: can't start new thread"},
    {"ended.keyboard", "KeyboardInterrupt"},
};

inline const std::string kNew =
    "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 9.00 GiB of which 1.00 GiB is free. "
    "Process 11 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 6.00 GiB memory in use. "
    "7.00 GiB allowed; Of the allocated memory 4.50 GiB is allocated by PyTorch, with 16.00 MiB allocated in private "
    "pools (e.g., CUDA Graphs), and 1.25 GiB is reserved by PyTorch but unallocated. If reserved but unallocated "
    "memory "
    "is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation";

inline void expect_new(const TextMessage& message) {
  EXPECT_EQ(figure(message, Figure::tried), 3 * kGiB);
  EXPECT_EQ(figure(message, Figure::total), 9 * kGiB);
  EXPECT_EQ(figure(message, Figure::free), 1 * kGiB);
  EXPECT_EQ(figure(message, Figure::process_total), 6 * kGiB);
  EXPECT_EQ(figure(message, Figure::limit), 7 * kGiB);
  EXPECT_EQ(figure(message, Figure::allocated), 4.5 * kGiB);
  EXPECT_EQ(figure(message, Figure::private_pools), 16 * kMiB);
  EXPECT_EQ(figure(message, Figure::reserved_unallocated), 1.25 * kGiB);
  ASSERT_EQ(message.processes.size(), 1U);
  EXPECT_EQ(message.processes[0], (std::pair<int64_t, double>{11, 2 * kGiB}));
}

}  // namespace oomscope
