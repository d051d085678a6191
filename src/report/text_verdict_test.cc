// What a message and the log around it say: kinds by figures and by frames, endings, phases, rules and their changes.
#include "analysis/text_facts.h"

#include <gtest/gtest.h>

#include "analysis/rules/ranking.h"
#include "analysis/rules/rule.h"
#include "evidence/text/text_reader.h"
#include "report/proof_lines.h"
#include "support/text_case.h"

namespace oomscope {
namespace {

TEST(SharedCard, TwoRanksOfOneNodeOnOneCard) {
  EXPECT_TRUE(says_shared({{"rank0/train.log", shared(0, "18.00 GiB", "10.00 MiB")},
                           {"rank1/train.log", shared(0, "18.00 GiB", "10.00 MiB")}}));
}
TEST(SharedCard, AnIndexCountsOnItsOwnNode) {
  EXPECT_FALSE(says_shared({{"node0/rank0/train.log", shared(0, "18.00 GiB", "10.00 MiB")},
                            {"node1/rank8/train.log", shared(0, "18.00 GiB", "10.00 MiB")}}));
}
TEST(SharedCard, IndicesThatFollowTheRanksMayBeOfSeveralNodes) {
  // Others hold 9 GiB beside 30 of this process: no rank of the same job.
  EXPECT_FALSE(says_shared(
      {{"rank0.log", shared(0, "30.00 GiB", "10.00 MiB")}, {"rank8.log", shared(0, "30.00 GiB", "10.00 MiB")}}));
  EXPECT_TRUE(says_shared(
      {{"rank0.log", shared(0, "18.00 GiB", "10.00 MiB")}, {"rank8.log", shared(0, "18.00 GiB", "10.00 MiB")}}));
}

TEST(Findings, AreToldOfARequestThatIsPrintedAsNothing) {
  EXPECT_FALSE(findings_of({{"a.log", "Torch: not enough memory: you tried to allocate 0GB\n"}}).empty());
}

TEST(FewerWorkers, HasTheSumForThisMachine) {
  const std::vector<Finding> findings =
      findings_of({{"a.log",
                    "torchrun --nproc_per_node=4 t.py --num_workers 8\nbatch: torch.Size([32, 3, 512, 512])\n"
                    "              total        used        free      shared  buff/cache   available\n"
                    "Mem:           62Gi        50Gi       1.0Gi       2.0Gi        10Gi        9Gi\n"
                    "RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed.\n"}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().changes.front().text.key, "remedy.fewer-workers.sum");
}

std::string caught(const std::string& what_follows) {
  return "epoch 1 step 7 loss 0.9\nCUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity; "
         "14.00 GiB already allocated; 30.00 MiB free; 14.50 GiB reserved in total by PyTorch)\n" +
         what_follows;
}

TEST(ARunThatWentOn, HasNotFailed) {
  EXPECT_EQ(kind_of(caught("epoch 1 step 9 loss 0.8\nepoch 1 step 10 loss 0.7\n")), Kind::no_failure);
  EXPECT_EQ(kind_of(caught("skipping this batch\nepoch 1 step 9 loss 0.8\n")), Kind::no_failure);
  EXPECT_EQ(kind_of(caught("Training finished\n")), Kind::no_failure);
  EXPECT_EQ(kind_of("tcmalloc: large alloc 4294967296 bytes == 0x1\nepoch 2 loss 0.1\n"), Kind::no_failure);
}
TEST(ARunThatWentOn, HasCountersOfAnyForm) {
  EXPECT_EQ(kind_of("out of memory (CUDA out of memory. Tried to allocate 1.00 GiB), batch skipped\n"
                    "Epoch: [0][20/500] Time 0.3 Loss 3.2\n"),
            Kind::no_failure);
  EXPECT_EQ(kind_of(caught("Epoch: [0][20/500] Time 0.3\nEpoch: [0][40/500] Time 0.3\n")), Kind::no_failure);
  EXPECT_EQ(kind_of(caught("{'loss': 0.5, 'epoch': 0.35}\n{'loss': 0.4, 'epoch': 0.36}\n")), Kind::no_failure);
}
TEST(ARunThatWentOn, IsToldWithWhatItOutlived) {
  const auto found = facts_of({caught("epoch 1 step 9 loss 0.8\nepoch 1 step 10 loss 0.7\n")});
  ASSERT_NE(found->facts.outlived(), nullptr);
  EXPECT_EQ(found->facts.outlived()->message->line, 2);
  EXPECT_EQ(found->facts.outlived()->sign->line, 4);
  EXPECT_EQ(found->facts.also, std::vector<Kind>{Kind::gpu_oom});
}
TEST(ARunThatWentOn, IsNoneWhereTheCountersStandStill) {
  const std::string bar = " 12%|#2   | 12/100 [00:03<00:20, 4.00it/s]\n";
  EXPECT_NE(kind_of(caught("")), Kind::no_failure);
  EXPECT_NE(kind_of(caught(bar + bar)), Kind::no_failure);
}
TEST(ARunThatWentOn, IsNoneWhereBufferedLinesComeLast) {
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    loss.backward()\n";
  const std::string lines = "step 1 loss 0.9\nstep 2 loss 0.8\nstep 3 loss 0.7\n";
  EXPECT_NE(kind_of(traceback + oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB") + lines),
            Kind::no_failure);
}
TEST(ARunThatWentOn, IsNoneWhereALauncherEndsIt) {
  EXPECT_NE(kind_of(caught("step 9 loss 0.8\nstep 10 loss 0.7\nChildFailedError:\n")), Kind::no_failure);
}
TEST(ARunThatWentOn, MayEndOfSomethingElse) {
  const auto found = facts_of({caught("step 9 loss 0.8\nstep 10 loss 0.7\nKilled\n")});
  EXPECT_EQ(found->facts.kind, Kind::host_oom_killed);
  EXPECT_EQ(found->facts.survived.size(), 1U);
}
TEST(ARunThatWentOn, HasLostAProcessAllTheSame) {
  const std::string steps = "step 2 loss 0.9\nstep 3 loss 0.8\nstep 4 loss 0.7\n";
  const std::string kernel = "Out of memory: Killed process 991 (";
  const std::string sizes = ") total-vm:40kB, anon-rss:30kB, file-rss:10kB, shmem-rss:0kB\n";
  EXPECT_EQ(kind_of("step 1 loss 1.0\n" + kernel + "python3" + sizes + steps), Kind::host_oom_killed);
  EXPECT_EQ(kind_of("step 1 loss 1.0\n" + kernel + "chrome" + sizes + steps), Kind::no_failure);
}
TEST(ARunThatWentOn, LeavesAChoiceOut) {
  EXPECT_EQ(kind_of("OutOfMemoryError: out of resource: shared memory, Required: 1, Hardware limit: 1.\n"
                    "Ignoring this choice.\n"),
            Kind::no_failure);
}

TEST(ARunThatWentOn, SaysSoInItsOwnWords) {
  EXPECT_EQ(kind_of(caught("trying batch size 32\nsaved model to out.pt\n")), Kind::no_failure);
  EXPECT_EQ(kind_of(caught("retrying with batch size 32\nEpoch 1/3\nEpoch 2/3\n")), Kind::no_failure);
  EXPECT_EQ(kind_of("Exit status 137 as expected\nall tests passed\n"), Kind::no_failure);
  EXPECT_EQ(kind_of("exit code: -9 of an old run\nEpoch 1/2 loss 1\nTraining complete\n"), Kind::no_failure);
}
TEST(ARunThatWentOn, DrawsABarAnEpoch) {
  const auto bar = [](const std::string& epoch) {
    return "Epoch " + epoch + ": 100%|####| 500/500 [01:23<00:00, 6.01it/s]\n";
  };
  EXPECT_EQ(kind_of(caught(bar("1") + bar("2"))), Kind::no_failure);
  EXPECT_NE(kind_of(caught(bar("1") + bar("1"))), Kind::no_failure);
}

const std::string kCancelled = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2030-01-02T03:04:05 ***\n";

TEST(AnEndingOnPurpose, YieldsToAFailureOfMemory) {
  const std::string kill = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n";
  const std::string full = oom("2.00 GiB", "16.00 GiB", "15.80 GiB", "30.00 MiB", "15.90 GiB");
  for (const std::string& text : {kCancelled + kill, kill + kCancelled})
    EXPECT_EQ(kind_of(text), Kind::cgroup_or_slurm_limit) << text;
  for (const std::string& text : {kCancelled + full, full + kCancelled})
    EXPECT_EQ(kind_of(text), Kind::gpu_oom_capacity) << text;
}
TEST(AnEndingOnPurpose, IsNotCertainBesideAKill) {
  EXPECT_EQ(facts_of({kCancelled})->facts.confidence, Confidence::high);
  EXPECT_EQ(facts_of({kCancelled + "srun: error: n1: tasks 0-3: Killed\n"})->facts.confidence, Confidence::high);
  const auto killed = facts_of({kCancelled + "Killed\n"});
  EXPECT_EQ(killed->facts.kind, Kind::not_memory);
  EXPECT_EQ(killed->facts.confidence, Confidence::medium);
}
TEST(AnEndingOnPurpose, MayFollowAnErrorOfTheProgram) {
  const auto found =
      facts_of({"Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    y = model(x)\n"
                "RuntimeError: shape '[2, 3]' is invalid for input of size 7\n" +
                kCancelled + "srun: error: n1: task 1: Killed\n"});
  ASSERT_NE(found->facts.failure, nullptr);
  EXPECT_EQ(found->facts.failure->id, "program.error");
}

const std::string kError =
    "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    run()\nValueError: bad config\n";

TEST(ALauncher, ClearsUpBehindAnErrorOfTheProgram) {
  const std::string cleaning =
      "[launch.py:315:sigkill_handler] Killing subprocess 12\n"
      "[launch.py:321:sigkill_handler] ['python', 't.py'] exits with return code = 1\n";
  EXPECT_EQ(facts_of({kError + cleaning})->facts.failure->id, "program.error");
  EXPECT_EQ(kind_of(cleaning), Kind::not_memory);
  EXPECT_EQ(claim_of(cleaning), "log.not-memory-launcher.claim");
}
TEST(ALauncher, EndsTheOthersOfTheFirstToFail) {
  const std::string first = "failed (exitcode: 1) local_rank: 0 (pid: 1) of binary: python\n";
  const std::string other = "Other Failures:\n[1]:\n  exitcode  : -9 (pid: 2)\n";
  EXPECT_EQ(kind_of(kError + first + other), Kind::not_memory);
  EXPECT_EQ(kind_of(kError + "failed (exitcode: -9) local_rank: 1 (pid: 2) of binary: python\n" + other),
            Kind::host_oom_killed);
}

TEST(ALoaderWorker, MayEndOfAnErrorThatIsNamed) {
  const std::string exited = "RuntimeError: DataLoader worker (pid(s) 11, 12) exited unexpectedly\n";
  EXPECT_EQ(kind_of(exited), Kind::dataloader_worker_killed);
  EXPECT_EQ(kind_of("KeyError: Caught KeyError in DataLoader worker process 0.\n" + exited), Kind::not_memory);
  EXPECT_EQ(kind_of("RuntimeError: An attempt has been made to start a new process before the current process has "
                    "finished its bootstrapping phase.\n" +
                    exited),
            Kind::not_memory);
  EXPECT_EQ(kind_of("KeyboardInterrupt\n" + exited), Kind::not_memory);
}

TEST(AMapping, IsRefusedForBytesWhereItIsLarge) {
  const auto mapping = [](const std::string& bytes, const std::string& file) {
    return "RuntimeError: unable to mmap " + bytes + " bytes from file <" + file + ">: Cannot allocate memory (12)\n";
  };
  EXPECT_EQ(claim_of(mapping("9976576152", "model.bin")), "log.host-allocation.claim");
  EXPECT_EQ(claim_of(mapping("48", "data.bin")), "log.map-count.claim");
  EXPECT_EQ(claim_of(mapping("9976576", "/torch_1_2")), "log.map-count.claim");
}

TEST(ASignalAlone, SaysLittle) {
  for (const char* text : {"Killed\n", "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)\n",
                           "\"OOMKilled\": false, \"ExitCode\": 137\n", "failed (exitcode: -9) local_rank: 0\n"}) {
    const auto found = facts_of({text});
    EXPECT_EQ(found->facts.kind, Kind::host_oom_killed) << text;
    EXPECT_EQ(found->facts.confidence, Confidence::low) << text;
    EXPECT_EQ(std::count(found->facts.also.begin(), found->facts.also.end(), Kind::not_memory), 1) << text;
  }
}

TEST(AHeap, HasALimitOfItsOwn) {
  EXPECT_EQ(claim_of("java.lang.OutOfMemoryError: Java heap space\n"), "log.runtime-heap.claim");
}
TEST(AMessageThatWasCut, NamesNoOtherAllocator) {
  EXPECT_EQ(claim_of("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total "
                     "capacity of 79.15 GiB of which 1.50 GiB is free. Including non-PyTorch memory, this process has "
                     "77.60 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch\n"),
            "log.figures-cut.claim");
}
TEST(AFinding, NamesSomethingInEverySlot) {
  for (const char* text : {"RuntimeError: No CUDA GPUs are available\n", "IndexError: index out of range in self\n",
                           "ptxas error: Entry function uses too much shared data (0xc800 bytes, 0xc000 max)\n"}) {
    const std::vector<Finding> findings = findings_of({{"a.log", text}});
    ASSERT_FALSE(findings.empty()) << text;
    EXPECT_FALSE(findings.front().claim.values.front().text.empty()) << text;
  }
  const std::vector<Finding> nodes = findings_of({{"a.log", "oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0\n"}});
  ASSERT_FALSE(nodes.empty());
  EXPECT_EQ(nodes.front().claim.values.front().phrases.front().key, "text.victim-unnamed");
}

TEST(ZeroFigures, SayNothing) {
  const auto none = facts_of({oom("2.00 GiB", "0 bytes", "1.00 GiB", "0 bytes", "1.20 GiB")});
  EXPECT_EQ(none->facts.kind, Kind::gpu_oom);
  for (const BalanceRow& row : none->facts.balance) EXPECT_NE(row.name.key, "text.row-free");
}
TEST(NoLimit, IsWhatTheLargestNumberMeans) {
  const auto none =
      facts_of({"torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
                "Currently allocated : 7.00 GiB\nRequested : 2.00 GiB\nDevice limit : 9.00 GiB\n"
                "Free (according to CUDA): 1.00 GiB\nPyTorch limit (set by user-supplied memory fraction) : "
                "17179869184.00 GiB\n"});
  EXPECT_EQ(none->facts.numbers[Figure::tried], 2.0 * (1 << 30));
  EXPECT_FALSE(none->facts.card.limit);
  EXPECT_TRUE(none->facts.caveats.empty());
}
TEST(NoLimit, IsThatOfACgroupWithoutOne) {
  const auto none =
      facts_of({"memory: usage 3000kB, limit 9007199254740988kB, failcnt 0\n"
                "Memory cgroup out of memory: Killed process 5 (python)\n"});
  EXPECT_FALSE(none->facts.numbers[Figure::limit]);
}
TEST(Library, IsNamedByItsStatus) {
  const auto library = [](const std::string& text) {
    const std::vector<Finding> findings = findings_of({{"a.log", text}});
    return findings.empty() ? "" : findings.front().claim.values.front().text;
  };
  EXPECT_EQ(library("RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED\n"), "cuFFT");
  EXPECT_EQ(library("CUDA error: CUSPARSE_STATUS_ALLOC_FAILED when calling `cusparseCreate(handle)`\n"), "cuSPARSE");
  EXPECT_EQ(library("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"), "cuBLAS");
}
TEST(FirstLineOfALibrary, HasThePhaseOfTheTracebackBehindIt) {
  const auto found = facts_of(
      {"THCudaCheck FAIL file=/src/THCStorage.cu line=58 error=2 : out of memory\nTraceback (most recent call last):\n"
       "  File \"m.py\", line 8, in train\n    loss.backward()\n"
       "RuntimeError: cuda runtime error (2) : out of memory at /src/THCStorage.cu:58\n"});
  EXPECT_EQ(found->facts.phase, Phase::backward);
  EXPECT_EQ(found->facts.failures, 1);
}
TEST(ProgramBesideTorch, IsNotCalledPyTorch) {
  const std::vector<Finding> findings =
      findings_of({{"a.log", "allocating 8192.00 MiB on device 0: cudaMalloc failed: out of memory\n"}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().claim.key, "log.program-request.claim");
  EXPECT_EQ(findings.front().changes.front().text.key, "remedy.offload.llama");
}

std::string killed(const std::string& constraint, const std::string& process) {
  return "oom-kill:constraint=" + constraint + ",nodemask=0,task=x\nOut of memory: Killed process 991 (" + process +
         ") total-vm:40000kB, anon-rss:30000kB, file-rss:100kB, shmem-rss:0kB\n";
}
TEST(KilledByTheKernel, ForTheNodesThatTheJobMayUse) {
  EXPECT_EQ(claim_of(killed("CONSTRAINT_NONE", "python3")), "log.host-killed-named.claim");
  EXPECT_EQ(claim_of(killed("CONSTRAINT_CPUSET", "python3")), "log.host-killed-nodes.claim");
  EXPECT_EQ(claim_of(killed("CONSTRAINT_MEMORY_POLICY", "python3")), "log.host-killed-nodes.claim");
}
TEST(KilledByTheKernel, AnotherProgramThanTheJob) {
  EXPECT_EQ(claim_of(killed("CONSTRAINT_NONE", "chrome")), "log.host-killed-other.claim");
  const std::vector<Finding> findings = findings_of({{"a.log", killed("CONSTRAINT_NONE", "chrome")}});
  EXPECT_EQ(findings.front().changes.size(), 1U);
}
TEST(KilledByTheKernel, NotTheWorkerThatTheLogNames) {
  const std::string worker = "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.\n";
  const auto other = facts_of({worker, killed("CONSTRAINT_NONE", "java")});
  EXPECT_EQ(other->facts.kind, Kind::dataloader_worker_killed);
  EXPECT_EQ(other->facts.caveats.front().code, "text-other-victim");
  const auto python = facts_of({worker, killed("CONSTRAINT_NONE", "python")});
  EXPECT_EQ(python->facts.kind, Kind::host_oom_killed);
  EXPECT_EQ(python->facts.caveats.front().code, "text-other-victim");
}
TEST(ACrash, IsNamedByItsExitCode) {
  const auto crash = facts_of({"failed (exitcode: -11) local_rank: 0 (pid: 3) of binary: python\n"});
  EXPECT_EQ(crash->facts.failure->what, "exitcode: -11");
}
TEST(ALimitThatDecides, IsStated) {
  const auto limited = facts_of(
      {"CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 60.00 GiB is "
       "free. Including non-PyTorch memory, this process has 8.50 GiB memory in use. 8.00 GiB allowed; Of the "
       "allocated "
       "memory 6.00 GiB is allocated by PyTorch, and 1.80 GiB is reserved by PyTorch but unallocated."});
  EXPECT_EQ(limited->facts.caveats.front().code, "text-limit-decides");
}

// The ids of what is offered first of all, of a log with this line before a failure of capacity.
std::vector<std::string> offered(const std::string& line) {
  const std::vector<Finding> findings =
      findings_of({{"a.log", line +
                                 "\nTraceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
                                 "    loss.backward()\n" +
                                 oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")}});
  std::vector<std::string> ids;
  if (!findings.empty()) {
    for (const Change& change : findings.front().changes) ids.push_back(change.remedy);
  }
  return ids;
}
bool offers(const std::string& line, std::string_view remedy) {
  const std::vector<std::string> ids = offered(line);
  return std::find(ids.begin(), ids.end(), remedy) != ids.end();
}

TEST(InForce, IsNotOfferedAgain) {
  EXPECT_TRUE(offers("python t.py --batch_size 8", "smaller-batch"));
  EXPECT_FALSE(offers("python t.py --batch_size 1", "smaller-batch"));
  EXPECT_FALSE(offers("per_device_train_batch_size=1, per_device_eval_batch_size=8", "smaller-batch"));
  EXPECT_TRUE(offers("per_device_train_batch_size=8, per_device_eval_batch_size=1", "smaller-batch"));
  EXPECT_TRUE(offers("'fp16': False", "mixed-precision"));
  EXPECT_FALSE(offers("'fp16': True", "mixed-precision"));
  EXPECT_FALSE(offers("Trainer(precision=\"bf16-mixed\")", "mixed-precision"));
  EXPECT_FALSE(offers("torch_dtype=torch.bfloat16", "mixed-precision"));
  EXPECT_FALSE(offers("{\"bf16\": {\"enabled\": true}}", "mixed-precision"));
  EXPECT_TRUE(offers("{\"bf16\": {\"enabled\": false}}", "mixed-precision"));
  EXPECT_TRUE(offers("gradient_accumulation_steps=1", "gradient-accumulation"));
  EXPECT_FALSE(offers("gradient_accumulation_steps=8", "gradient-accumulation"));
  EXPECT_TRUE(offers("python t.py --gradient_checkpointing false", "checkpointing"));
  EXPECT_FALSE(offers("python t.py --gradient_checkpointing true", "checkpointing"));
  EXPECT_TRUE(offers("gradient_checkpointing=False", "checkpointing"));
  EXPECT_FALSE(offers("gradient_checkpointing=True", "checkpointing"));
  EXPECT_FALSE(offers("python t.py --gradient_checkpointing --lr 1", "checkpointing"));
}
TEST(InForce, LeavesEnoughToOffer) {
  EXPECT_GE(offered("--batch_size 1 'bf16': True, gradient_checkpointing=True").size(), 3U);
}
TEST(Batch, IsTheOneOfACard) {
  const auto batch = [](const std::string& text) {
    return read_text(text + "\nKilled\n", "a.log").surroundings.batch_size;
  };
  EXPECT_EQ(batch("Instantaneous batch size per device = 2"), 2);
  EXPECT_EQ(batch("{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 4}"), 4);
  EXPECT_EQ(batch("Total train batch size = 16"), std::nullopt);
  EXPECT_EQ(batch("def run(x, batch_size=1):"), std::nullopt);
}
TEST(Paste, IsForThePlaceThatTheLogShows) {
  const std::string held =
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB of "
      "which 500.00 MiB is free. Of the allocated memory 9.00 GiB is allocated by PyTorch, and "
      "5.50 GiB is reserved by PyTorch but unallocated.\n";
  const auto pasted = [&](const std::string& before) {
    return findings_of({{"a.log", before + "\n" + held}}).front().changes.front().commands;
  };
  EXPECT_TRUE(pasted("C:\\Users\\me>python t.py").front().starts_with("set "));
  EXPECT_TRUE(pasted("PS C:\\Users\\me> python t.py").front().starts_with("$env:"));
  EXPECT_TRUE(pasted("Step 3/9 : RUN python t.py in Dockerfile").front().starts_with("ENV "));
  EXPECT_TRUE(pasted("docker run image python t.py").back().starts_with("ENV "));
  EXPECT_TRUE(pasted("#SBATCH --gres=gpu:1").front().starts_with("export "));
  EXPECT_TRUE(pasted("Cell In[3], line 1").front().starts_with("%env "));
}
TEST(Loader, HasTheBatchOfTheCase) {
  const std::string killed = "RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed.\n";
  const auto pasted = [&](const std::string& before) {
    return findings_of({{"a.log", before + "\n" + killed}}).front().changes.front().commands.front();
  };
  EXPECT_NE(pasted("").find("batch_size=batch_size,"), std::string::npos);
  EXPECT_NE(pasted("--batch_size 24").find("batch_size=24,"), std::string::npos);
  EXPECT_NE(pasted("num_workers=1").find("num_workers=0"), std::string::npos);
}
TEST(Growth, ThatIsSteadyStandsFirst) {
  std::string log;
  for (int step = 1; step < 9; ++step)
    log += "step " + std::to_string(step) + " memory allocated: " + std::to_string(step) + ".50 GiB\n";
  const std::vector<Finding> findings =
      findings_of({{"a.log", log + oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")}});
  EXPECT_EQ(findings.front().id, "memory-grows");
}

TEST(Jobs, SayHowMuchWasUsedOfWhichLimit) {
  const auto figures = [](const std::string& text) {
    const auto found = facts_of({text});
    EXPECT_EQ(found->facts.kind, Kind::cgroup_or_slurm_limit) << text;
    return std::pair(found->facts.numbers[Figure::used].value_or(0), found->facts.numbers[Figure::limit].value_or(0));
  };
  const double gib = 1 << 30;
  EXPECT_EQ(figures("slurmstepd: error: Job 7 exceeded memory limit (9437184 > 8388608), being killed\n"),
            std::pair(9 * gib, 8 * gib));
  EXPECT_EQ(figures("=>> PBS: job killed: mem 9437184kb exceeded limit 8388608kb\n"), std::pair(9 * gib, 8 * gib));
  EXPECT_EQ(figures("job 7 exceeds job hard limit \"h_vmem\" of queue \"a@b\" (9663676416.00000 > "
                    "limit:8589934592.00000) - sending SIGKILL\n"),
            std::pair(9 * gib, 8 * gib));
  EXPECT_EQ(figures("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n    Max Memory :   8192 MB\n"
                    "    Total Requested Memory :   8192.00 MB\n"),
            std::pair(8 * gib, 8 * gib));
  EXPECT_EQ(figures("Job has gone over memory limit of 8192 megabytes. Peak usage: 9216 megabytes.\n"),
            std::pair(9 * gib, 8 * gib));
  EXPECT_EQ(
      figures("State: OUT_OF_MEMORY (exit code 0)\nMemory Utilized: 8.00 GB\nMemory Efficiency: 100.00% of 8.00 GB\n"),
      std::pair(8 * gib, 8 * gib));
  EXPECT_EQ(figures("Container is running beyond physical memory limits. Current usage: 9.0 GB of 8 GB physical memory "
                    "used\n"),
            std::pair(9 * gib, 8 * gib));
  EXPECT_EQ(figures("JobID        State      ReqMem     MaxRSS\n------------ ---------- ---------- ----------\n"
                    "7            OUT_OF_ME+         8G\n7.batch      OUT_OF_ME+               8388608K\n"),
            std::pair(8 * gib, 8 * gib));
  EXPECT_EQ(figures("JobID|State|ReqMem|MaxRSS\n7|OUT_OF_MEMORY|8Gn|\n7.0|OUT_OF_MEMORY|8Gn|8388608K\n"),
            std::pair(8 * gib, 8 * gib));
}

TEST(Balance, NamesTheLargestOtherProcesses) {
  const auto shared_card = facts_of(
      {"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 1.00 GiB is "
       "free. "
       "Process 77 has 8.00 GiB memory in use. Process 78 has 2.00 GiB memory in use. Including non-PyTorch memory, "
       "this "
       "process has 5.00 GiB memory in use. Of the allocated memory 4.00 GiB is allocated by PyTorch, and 10.00 MiB is "
       "reserved by PyTorch but unallocated."});
  const auto row = std::find_if(shared_card->facts.balance.begin(), shared_card->facts.balance.end(),
                                [](const BalanceRow& each) { return each.name.key == "text.row-other-process"; });
  ASSERT_NE(row, shared_card->facts.balance.end());
  EXPECT_EQ(row->name.values.front().text, "77");
}

TEST(KindByFigures, Capacity) {
  EXPECT_EQ(kind_of(oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")), Kind::gpu_oom_capacity);
}
TEST(KindByFigures, Fragmentation) {
  EXPECT_EQ(kind_of(oom("2.00 GiB", "16.00 GiB", "8.00 GiB", "500.00 MiB", "14.50 GiB")), Kind::gpu_oom_fragmentation);
}
TEST(KindByFigures, LittleSlackAboveASmallRequestLeavesItOpen) {
  const auto open = facts_of({oom("2.00 MiB", "16.00 GiB", "14.50 GiB", "1.00 MiB", "14.90 GiB")});
  EXPECT_EQ(open->facts.kind, Kind::gpu_oom);
  EXPECT_EQ(open->facts.also, (std::vector<Kind>{Kind::gpu_oom_capacity, Kind::gpu_oom_fragmentation}));
}
TEST(KindByFigures, ACounterThatWrappedDecidesNothing) {
  const auto open = facts_of({oom("20.00 MiB", "10.76 GiB", "17179869183.99 GiB", "8.00 MiB", "9.60 GiB")});
  EXPECT_EQ(open->facts.kind, Kind::gpu_oom);
  EXPECT_EQ(open->facts.confidence, Confidence::low);
}
TEST(KindByFigures, OtherProcesses) {
  EXPECT_EQ(kind_of(oom("20.00 MiB", "16.00 GiB", "1.00 GiB", "5.00 MiB", "1.10 GiB")), Kind::gpu_oom_other_process);
}
TEST(KindByFigures, ARequestAboveTheCard) {
  EXPECT_EQ(kind_of(oom("200.00 GiB", "16.00 GiB", "1.00 GiB", "14.00 GiB", "1.10 GiB")), Kind::gpu_oom_capacity);
}
TEST(KindByFigures, FreeMemoryThatCoversTheRequest) {
  const auto open = facts_of({oom("2.00 GiB", "16.00 GiB", "4.00 GiB", "9.00 GiB", "4.10 GiB")});
  EXPECT_EQ(open->facts.kind, Kind::gpu_oom);
  EXPECT_EQ(open->facts.confidence, Confidence::low);
}
TEST(KindByFigures, ALimitOfTheProcess) {
  const auto limited = facts_of(
      {"CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 60.00 GiB is "
       "free. Including non-PyTorch memory, this process has 8.50 GiB memory in use. 8.00 GiB allowed; Of the "
       "allocated "
       "memory 7.60 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."});
  EXPECT_EQ(limited->facts.kind, Kind::gpu_oom);
  EXPECT_EQ(limited->facts.also, std::vector<Kind>{Kind::gpu_oom_capacity});
  EXPECT_EQ(limited->facts.confidence, Confidence::high);
}

TEST(KindByFrames, TheFirstUseOfTheCard) {
  EXPECT_EQ(kind_of("Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    x = torch.zeros(1, "
                    "device=\"cuda\")\nRuntimeError: CUDA error: out of memory\n"),
            Kind::gpu_oom_first_alloc_or_context);
}
TEST(KindByFrames, PinnedMemory) {
  EXPECT_EQ(kind_of("  File \"/torch/utils/data/_utils/pin_memory.py\", line 3, in pin_memory\n    return "
                    "data.pin_memory()\nRuntimeError: CUDA error: out of memory\n"),
            Kind::host_alloc_failed);
}
TEST(KindByFrames, NoSpaceForASemaphoreIsSharedMemory) {
  EXPECT_EQ(kind_of("  File \"/lib/multiprocessing/synchronize.py\", line 5, in __init__\n    sl = "
                    "_multiprocessing.SemLock(\nOSError: [Errno 28] No space left on device\n"),
            Kind::shm_exhausted);
  EXPECT_EQ(
      kind_of("  File \"train.py\", line 5, in main\n    torch.save(m, path)\nOSError: [Errno 28] No space left on "
              "device\n"),
      Kind::not_memory);
}

TEST(KindOfALog, AnAssertionOutweighsWhatFollows) {
  EXPECT_EQ(kind_of("/src/Indexing.cu:3: kernel: Assertion `i < n` failed.\nRuntimeError: CUDA error: "
                    "CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"),
            Kind::not_memory);
}
TEST(KindOfALog, TheLimitsOwnLineOutweighsKilled) {
  EXPECT_EQ(kind_of("Killed\nslurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\n"),
            Kind::cgroup_or_slurm_limit);
}
TEST(KindOfALog, HealthyTextHasNone) {
  const auto healthy = facts_of({"Epoch 1/3 loss 0.5\nEpoch 2/3 loss 0.4\nSaved checkpoint.\n"});
  EXPECT_EQ(healthy->facts.kind, Kind::no_failure);
  EXPECT_EQ(healthy->facts.failure, nullptr);
}

Phase phase_after(std::string frames) {
  return facts_of({frames + "RuntimeError: CUDA error: out of memory\n"})->facts.phase;
}

TEST(PhaseOfALog, ByFrames) {
  EXPECT_EQ(phase_after(frame("t.py", "main", "loss.backward()")), Phase::backward);
  EXPECT_EQ(phase_after(frame("t.py", "main", "optimizer.step()")), Phase::optimizer_step);
  EXPECT_EQ(phase_after(frame("t.py", "validate", "out = model(x)")), Phase::evaluation);
  EXPECT_EQ(phase_after(frame("t.py", "main", "torch.save(model.state_dict(), p)")), Phase::saving);
  EXPECT_EQ(phase_after(frame("t.py", "main", "model.load_state_dict(torch.load(p))")), Phase::resume);
  EXPECT_EQ(phase_after(frame("t.py", "main", "model.cuda()")), Phase::load);
  EXPECT_EQ(phase_after(frame("t.py", "main", "model.generate(x)")), Phase::generation);
  EXPECT_EQ(phase_after(frame("t.py", "forward", "x = self.conv(x)")), Phase::forward);
}
TEST(PhaseOfALog, ByProgress) {
  EXPECT_EQ(phase_after("Epoch 1: loss 0.3\nSaving checkpoint to out/\n"), Phase::saving);
  EXPECT_EQ(phase_after("Epoch 1: loss 0.3\nValidation: 10%\n" + frame("t.py", "run", "out = model(x)")),
            Phase::evaluation);
}
TEST(PhaseOfALog, ASecondModelAfterTraining) {
  EXPECT_EQ(phase_after("Epoch 1: loss 0.3\n" + frame("t.py", "main", "model.to(device)")), Phase::next_model);
}

TEST(PhaseOfALog, ASecondModelAfterAnother) {
  const std::string move = frame("t.py", "main", "model_b = build(config).to(device)");
  for (const char* line :
       {"Fold 1 finished\n", "Running config 2\n", "trial 2\n", "Training model B\n", "fold #3: start\n"})
    EXPECT_EQ(phase_after(line + move), Phase::next_model) << line;
  for (const char* line : {"Fold 1\n", "Loading model 7B\n", "run 2.1\n", "trial 0\n", "model is ready\n"})
    EXPECT_EQ(phase_after(line + move), Phase::load) << line;
  EXPECT_NE(phase_after("Fold 2\n" + frame("t.py", "main", "model_inputs = tokenizer(t).to(device)")),
            Phase::next_model);
}
TEST(Balance, AddsUpToTheCard) {
  const auto found = facts_of({oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")});
  int64_t sum = 0;
  for (const BalanceRow& row : found->facts.balance) sum += row.bytes.value_or(0);
  EXPECT_EQ(sum, found->facts.balance_total_bytes);
  EXPECT_EQ(sum, int64_t{16} << 30);
}

TEST(Ranks, TheOneThatFailedForMemoryIsNamedFirst) {
  const std::string lost = "2030-01-01 00:10:00 NCCL error in: x.cpp:1, remote process exited\n";
  const auto found = facts_of(
      {lost, "2030-01-01 00:00:05 " + oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB"), lost});
  ASSERT_EQ(found->facts.ranks.size(), 3U);
  EXPECT_TRUE(found->facts.order_is_known);
  EXPECT_EQ(found->facts.ranks[0].rank, 1);
  EXPECT_EQ(found->facts.failure_log, 1U);
}

TEST(Leak, AllocatedThatOnlyRises) {
  std::string text;
  for (int i = 1; i < 7; ++i)
    text += oom("1.00 GiB", "16.00 GiB", std::to_string(9 + i) + ".00 GiB", "30.00 MiB", "15.50 GiB");
  const auto found = facts_of({text});
  EXPECT_EQ(found->facts.also.back(), Kind::leak_suspected);
}

TEST(Rules, HeldAndFreeMemoryThatWouldJoinAreNotCalledTooLittle) {
  std::string message = oom("2.50 GiB", "23.65 GiB", "20.10 GiB", "1.19 GiB", "21.98 GiB");
  message.pop_back();  // the wording since 1.10: before, there was no setting
  message += " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.\n";
  const auto found = facts_of({message});
  const std::vector<Finding> all = each_finding_of(*found);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().id, "capacity");
  EXPECT_EQ(all.front().because.key, "log.capacity-in-pieces.because");
  EXPECT_TRUE(proposes(all.front(), "allocator-setting"));
}

TEST(Rules, FragmentationDoesNotProposeToEmptyTheCache) {
  const auto found = facts_of({oom("2.00 GiB", "16.00 GiB", "8.00 GiB", "500.00 MiB", "14.50 GiB")});
  const std::vector<Finding> all = each_finding_of(*found);
  ASSERT_FALSE(all.empty());
  EXPECT_FALSE(proposes(all.front(), "release-cache"));
  EXPECT_TRUE(proposes(all.front(), "static-shapes"));
  EXPECT_TRUE(proposes(all.front(), "reuse-buffers"));
}

TEST(Rules, ASettingThatIsOnIsNotProposedAgain) {
  const auto found = facts_of({"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python t.py\n" +
                               oom("2.00 GiB", "16.00 GiB", "8.00 GiB", "500.00 MiB", "14.50 GiB")});
  for (const Finding& finding : each_finding_of(*found)) EXPECT_FALSE(proposes(finding, "allocator-setting"));
}

TEST(Rules, NoHalfPrecisionOnCardsWithoutIt) {
  const std::string full = oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB");
  for (const Finding& finding : each_finding_of(*facts_of({"Tesla P100-PCIE-16GB\n" + full})))
    EXPECT_FALSE(proposes(finding, "mixed-precision"));
  for (const Finding& finding : each_finding_of(*facts_of({"Tesla V100-SXM2-16GB\n" + full}))) {
    for (const Change& change : finding.changes) {
      for (const std::string& command : change.commands) EXPECT_EQ(command.find("bfloat16"), std::string::npos);
    }
  }
}

TEST(Rules, AnEvictionIsTheNodes) {
  const auto found = facts_of({"The node was low on resource: memory. Container main was using 9Gi"});
  EXPECT_EQ(found->facts.kind, Kind::host_oom_killed);
  const std::vector<Finding> all = each_finding_of(*found);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().changes.front().text.key, "remedy.raise-cgroup-limit.evicted");
}

TEST(Rules, AForkIsClaimedWhereOneIsSeen) {
  EXPECT_EQ(each_finding_of(*facts_of({"OSError: [Errno 12] Cannot allocate memory"})).front().claim.key,
            "log.host-allocation-bare.claim");
  EXPECT_EQ(each_finding_of(*facts_of({frame("/lib/subprocess.py", "_execute_child", "self.pid = _fork_exec(") +
                                       "OSError: [Errno 12] Cannot allocate memory"}))
                .front()
                .claim.key,
            "log.host-fork.claim");
}

TEST(Rules, TheKernelsLinesNameVictimAndLimit) {
  const auto found = facts_of(
      {"memory: usage 16777216kB, limit 16777216kB, failcnt 9\n"
       "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/docker/abc,task=python\n"
       "Memory cgroup out of memory: Killed process 4242 (python) total-vm:4kB, anon-rss:15800000kB, file-rss:1kB\n"});
  ASSERT_NE(found->facts.victim, nullptr);
  EXPECT_EQ(found->facts.victim->pid, 4242);
  EXPECT_EQ(found->facts.cgroup, "/docker/abc");
  EXPECT_EQ(found->facts.numbers[Figure::limit], 16.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(found->facts.numbers[Figure::anon_rss], 15800000.0 * 1024);
}

TEST(Rules, EachFailureHasAFindingWithAChange) {
  for (const char* text : {"Killed", "MemoryError", "received 0 items of ancdata", "[WinError 1455]",
                           "Unexpected bus error encountered in worker", "CUDNN_STATUS_NOT_INITIALIZED",
                           "CUDA error: out of memory", "OOMKilled", "device-side assert triggered",
                           "DataLoader worker (pid 3) is killed by signal: Killed.", "MPS backend out of memory"}) {
    const auto found = facts_of({text});
    std::vector<Finding> all;
    for (const Cause& cause : causes()) {
      for (Finding& finding : cause.find({.run = nullptr, .text = &found->facts})) all.push_back(std::move(finding));
    }
    ASSERT_FALSE(all.empty()) << text;
    EXPECT_FALSE(all.front().changes.empty()) << text;
    EXPECT_FALSE(all.front().evidence.empty()) << text;
  }
}

}  // namespace
}  // namespace oomscope
