// What looks like memory, or stands behind a message of memory, and is none.
#include "evidence/text/template.h"

namespace oomscope {
namespace {

const std::vector<Template> kTemplates = {
    // ---- the GPU refused work: whatever follows is a consequence ------------------------------------------------
    {.id = "gpu.assertion",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 5,
     .triggers = "assertion `|` failed",
     .pattern = R"(\.(?:cuh?|hip|cuda)[:(]\d+.{0,600}? Assertion `(?P<what>[^`]{0,200})` failed)"},
    {.id = "gpu.assert-triggered",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 5,
     .triggers = "assert triggered",
     .pattern = R"((?P<what>device-side assert triggered))"},
    {.id = "gpu.illegal-access",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 4,
     .triggers = "illegal memory access|illegal_address|cuda error|hip error",
     .pattern =
         R"((?:(?:CUDA|HIP) error : )?(?P<what>an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS))"},
    {.id = "gpu.error",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 4,
     .triggers = "cuda error|cuda runtime error|hip error|cuda failure|thcudacheck",
     .pattern =
         R"((?:(?:CUDA|HIP)(?: driver)? error ?: |cuda runtime error \(\d+\) ?: |Cuda failure (?:\d+ )?'|)"
         R"(THCudaCheck FAIL file=[^=]{0,200} line=\d+ error=\d+ : ))"
         R"((?P<what>misaligned address|unspecified launch failure|invalid argument|invalid device function|)"
         R"(no kernel image is available|invalid device ordinal|no CUDA-capable device|an illegal instruction|)"
         R"(uncorrectable ECC error|all CUDA-capable devices are busy|invalid configuration argument|)"
         R"(the launch timed out|peer access|unknown error|initialization error|driver shutting down|)"
         R"(invalid resource handle|system not yet initialized|named symbol not found|)"
         R"(CUDA-capable device\(s\) is/are busy or unavailable|device kernel image is invalid|invalid device symbol|)"
         R"(invalid device context|OS call failed|too many resources requested for launch|operation not (?:permitted|supported)|)"
         R"(operation failed due to a previous error|operation would make the legacy stream|forward compatibility was attempted|)"
         R"(hardware stack error|invalid program counter|device not ready|CUDA driver is a stub library|)"
         R"(the provided PTX was compiled|system has unsupported display driver|an attempt was made to|)"
         R"(invalid pitch argument|unrecognized error code|context is destroyed|mapping of buffer object failed))"},
    {.id = "gpu.error-unknown",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 3,
     .triggers = "cuda unknown error",
     .pattern = R"(CUDA (?P<what>unknown error))"},
    // Whatever else the runtime says: only "out of memory" is memory. Behind the colon alone: "CUDA kernel errors might
    // be asynchronously reported" follows an error of any kind.
    {.id = "gpu.error-other",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 3,
     .triggers = "cuda error|hip error",
     .pattern = R"((?:CUDA|HIP) error: (?P<what>\b(?:[abd-np-z]|o[a-tv-z])[a-z]{1,30} [a-z][^.:()\n]{3,80}))",
     .is_line = true},
    {.id = "gpu.xid",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 4,
     .triggers = "nvrm: xid",
     .pattern = R"(NVRM : (?P<what>Xid \(PCI:[^)]{1,20}\) : \d{1,4}))"},
    {.id = "gpu.fault",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 5,
     .triggers = "memory access fault by|hsa_status_error_|error_device_lost",
     .pattern =
         R"((?P<what>Memory access fault by GPU|HSA_STATUS_ERROR_(?:EXCEPTION|MEMORY_APERTURE_VIOLATION|ILLEGAL_INSTRUCTION)|)"
         R"((?:UR_RESULT|PI)_ERROR_DEVICE_LOST))"},
    {.id = "gpu.library",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 3,
     .triggers = "cublas_status|cudnn_status|cusolver_status|cusparse_status|curand_status|cufft_",
     .pattern =
         R"((?P<what>CUFFT_(?:EXEC_FAILED|INTERNAL_ERROR|INVALID_\w{1,20}|SETUP_FAILED|NOT_SUPPORTED|UNALIGNED_DATA)|)"
         R"(CU(?:BLAS|DNN|SOLVER|SPARSE|RAND)_STATUS_)"
         R"((?:EXECUTION_FAILED|INTERNAL_ERROR|INVALID_VALUE|ARCH_MISMATCH|MAPPING_ERROR|BAD_PARAM|NOT_SUPPORTED|)"
         R"(VERSION_MISMATCH|LICENSE_ERROR|SUBLIBRARY_VERSION_MISMATCH|SUBLIBRARY_LOADING_FAILED|)"
         R"(LAUNCH_FAILURE|INITIALIZATION_FAILED|TYPE_ERROR)))",
     .also = {Kind::gpu_lib_alloc_failed}},
    {.id = "gpu.driver-old",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 4,
     .triggers = "driver version is insufficient|driver on your system|no cuda gpus are|compiled with cuda enabled",
     .pattern = R"(driver version is insufficient|driver on your system is too old|no NVIDIA driver on your system|)"
                R"(No CUDA GPUs are available|not compiled with CUDA enabled)"},
    {.id = "index.range",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 4,
     .triggers = "index out of range in self",
     .pattern = R"(index out of range in self)"},
    {.id = "triton.shared",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 5,
     .triggers = "out of resource|too much shared data",
     .pattern =
         R"(out of resources? : (?P<what>shared memory|registers|threads|tensor memory|triton_\w{1,80}?(?i:required))|)"
         R"(uses too much shared data)"},
    {.id = "process.crashed",
     .family = Family::device,
     .kind = Kind::not_memory,
     .strength = 2,
     .triggers = "segmentation fault|sigsegv|exitcode|return code|0xc0000|malloc(): |double free|free(): |"
                 "prev_size|munmap_chunk",
     .pattern =
         R"((?P<what>Segmentation fault|SIGSEGV|malloc\(\): (?:corrupted|invalid|unaligned|unsorted|mismatching)|)"
         R"(double free or corruption|free\(\): (?:invalid|double|corrupted)|corrupted size vs\. prev_size|munmap_chunk\(\)|)"
         R"((?:exitcode|return code)[:= ]*-(?:11|6|4|8)\b|-1073741819\b|-1073740791\b|0x[Cc]00000(?:05|fd|FD)\b|)"
         R"(0x[Cc]0000409\b))",
     .is_line = true},
    // ---- ranks that wait for each other ----------------------------------------------------------------------------
    {.id = "collective.timeout",
     .family = Family::collective,
     .kind = Kind::not_memory,
     .strength = 3,
     .triggers = "collective operation timeout|watchdog|timed out|socket timeout|store based barrier|"
                 "seconds waiting for clients|wait timeout after|rendezvoustimeout",
     .pattern = R"(Watchdog caught collective operation time ?out|)"
                R"((?:NCCL|collective|Gloo) operation timed? ?out|)"
                R"(Timed out (?:initializing process group|waiting \d+ms for (?:recv|send) operation)|)"
                R"(operations have failed or timed out|Socket Timeout|in store based barrier|)"
                R"(seconds waiting for clients|wait timeout after \d+|socket has timed out|RendezvousTimeout)"},
    {.id = "collective.error",
     .family = Family::collective,
     .kind = Kind::not_memory,
     .strength = 2,
     .triggers = "nccl error|connection closed by peer|connection reset by peer|communicator was aborted|"
                 "address already in use|attaching to shared memory",
     .pattern = R"((?:NCCL Error \d+|NCCL error(?: in| : )).{0,300}?(?:unhandled (?:cuda|system) error|internal error|)"
                R"(invalid usage|remote process exited)|Connection (?:closed|reset) by peer|)"
                R"(NCCL communicator was aborted|(?i:address already in use)|)"
                R"(Error while attaching to shared memory segment)"},
    // ---- files
    // -----------------------------------------------------------------------------------------------------------
    {.id = "disk.stream",
     .family = Family::disk,
     .kind = Kind::not_memory,
     .strength = 5,
     .triggers = "inline_container|pytorchstream",
     .pattern = R"(enforce fail at inline_container\.cc|PytorchStream(?:Writer|Reader) failed|)"
                R"(write\(\) : fd \d+ failed)"},
    {.id = "disk.write",
     .family = Family::disk,
     .kind = Kind::not_memory,
     .strength = 5,
     .triggers = "write(): fd|disk quota|unexpected pos|input/output error",
     .pattern =
         R"(write\(\) : fd \d+ failed|Disk quota exceeded|\[Errno 5\] Input/output error|unexpected pos \d+ vs \d+)"},
    // ---- on purpose
    // ------------------------------------------------------------------------------------------------------
    // ---- the program's own errors: nothing else in the log tells of an end ------------------------------------------
    // An import that fails for memory is no fault of the program.
    {.id = "loader.map",
     .family = Family::host_alloc,
     .kind = Kind::host_alloc_failed,
     .strength = 3,
     .triggers = "importerror|cannot allocate memory",
     .pattern = R"((?:ImportError : .{0,300}?)?(?:failed to map segment from shared object|memory protection) : )"
                R"(Cannot allocate memory)",
     .also = {Kind::not_memory}},
    {.id = "program.import",
     .family = Family::program,
     .kind = Kind::not_memory,
     .strength = 1,
     .triggers = "importerror|modulenotfounderror|cannot open shared object|winerror 126|winerror 127|winerror "
                 "1114|winerror 182",
     .pattern =
         R"(^(?:ImportError|ModuleNotFoundError)\b.{0,400}|: cannot open shared object file|\[WinError (?:126|127|182|1114)\])",
     .is_line = true},
    // An engine measured while another process let go of the card.
    {.id = "engine.profiling",
     .family = Family::program,
     .kind = Kind::not_memory,
     .strength = 3,
     .triggers = "error in memory profiling",
     .pattern = R"(Error in memory profiling)",
     .also = {Kind::gpu_oom_other_process}},
    {.id = "program.shapes",
     .family = Family::program,
     .kind = Kind::not_memory,
     .strength = 1,
     .triggers = "cannot be multiplied|must match the size|sizes of tensors must|on the same device, but|size mismatch "
                 "for|no operator found for",
     .pattern = R"(shapes cannot be multiplied|must match the size of tensor|Sizes of tensors must match|)"
                R"(tensors to be on the same device, but|size mismatch for |No operator found for )",
     .is_line = true},
    {.id = "program.bootstrap",
     .family = Family::program,
     .kind = Kind::not_memory,
     .strength = 3,
     .triggers = "start a new process before|its bootstrapping phase",
     .pattern = R"(start a new process before the current process has finished its bootstrapping phase)"},
    // The kinds of errors that memory never gives: those of the program's own data.
    {.id = "worker.caught",
     .family = Family::program,
     .kind = Kind::not_memory,
     .strength = 3,
     .triggers = "in dataloader worker process",
     .pattern =
         R"(Caught (?P<what>(?:Key|Value|Type|Index|Attribute|FileNotFound|ZeroDivision|Assertion|Name|)"
         R"(UnicodeDecode|UnidentifiedImage|NotImplemented|Lookup|Permission|IsADirectory|ModuleNotFound|Import|)"
         R"(EOF|Unpickling|JSONDecode)Error) in DataLoader worker process)"},
    // What a launcher says of the first process that failed, by an exit code of its own; the traceback tells more.
    {.id = "launcher.failed",
     .family = Family::program,
     .kind = Kind::not_memory,
     .strength = 1,
     .triggers = "failed (exitcode|exits with return",
     .pattern = R"(failed \(exitcode: 1\) local_rank: \d+|exits with return code = 1\b)",
     .also = {Kind::gpu_oom, Kind::host_alloc_failed},
     .is_line = true},
    {.id = "program.threads",
     .family = Family::program,
     .kind = Kind::not_memory,
     .strength = 2,
     .triggers = "pthread_create failed|start new thread|resource temporarily",
     .pattern = R"(pthread_create failed|can't start new thread|Resource temporarily unavailable)",
     .also = {Kind::host_alloc_failed},
     .is_line = true},
    {.id = "ended.time-limit",
     .family = Family::by_hand,
     .kind = Kind::not_memory,
     .strength = 5,
     .triggers = "due to time limit|due to preemption|cancelled at",
     .pattern = R"((?P<what>DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)))"},
    // Slurm says so of a person's scancel, and of a step whose first task failed.
    {.id = "ended.cancelled",
     .family = Family::by_hand,
     .kind = Kind::not_memory,
     .strength = 5,
     .triggers = "cancelled at",
     .pattern = R"(CANCELLED AT (?:[\dT:-]+)? \*\*\*)"},
    {.id = "ended.signal",
     .family = Family::by_hand,
     .kind = Kind::not_memory,
     .strength = 4,
     .triggers = "got signal|death signal|signals.sighup|signals.sigint|sighup|srun: error",
     .pattern =
         R"(got signal: ?(?:1|2|15)\b|Received (?:1|2|15) death signal|)"
         R"(Signals\.SIG(?:HUP|INT)|Signal (?:1 \(SIGHUP\)|2 \(SIGINT\))|Received Signals\.SIGTERM death signal|)"
         R"(srun: error: \S{1,100}: tasks? [\d,-]+: (?:Terminated|Hangup|Interrupt|User defined signal))",
     .is_line = true},
    {.id = "ended.keyboard",
     .family = Family::by_hand,
     .kind = Kind::not_memory,
     .strength = 2,
     .triggers = "keyboardinterrupt",
     .pattern = R"(^KeyboardInterrupt)",
     .is_line = true},
};

}  // namespace

std::span<const Template> not_memory_templates() { return kTemplates; }

}  // namespace oomscope
