// Kinds by figures, by frames and by what else the logs say; findings and their changes.
#include "analysis/text_facts.h"

#include <gtest/gtest.h>

#include "analysis/rules/ranking.h"
#include "analysis/rules/rule.h"
#include "evidence/text/text_reader.h"
#include "report/proof_lines.h"

namespace oomscope {
namespace {

struct Case {
  std::vector<TextEvidence> logs;
  TextFacts facts;
};

// Facts point into the logs, so both live together.
std::unique_ptr<Case> facts_of(std::vector<std::string> texts) {
  auto out = std::make_unique<Case>();
  for (size_t i = 0; i < texts.size(); ++i)
    out->logs.push_back(read_text(texts[i], "rank" + std::to_string(i) + ".log"));
  out->facts = find_text_facts(out->logs);
  return out;
}

Kind kind_of(std::string text) { return facts_of({std::move(text)})->facts.kind; }

std::string oom(std::string tried, std::string total, std::string allocated, std::string free, std::string reserved) {
  return "RuntimeError: CUDA out of memory. Tried to allocate " + tried + " (GPU 0; " + total + " total capacity; " +
         allocated + " already allocated; " + free + " free; " + reserved + " reserved in total by PyTorch)\n";
}

// One rank's message on its local card 0, with what others hold there.
std::string shared(int gpu, std::string own, std::string free) {
  return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU " + std::to_string(gpu) +
         " has a total capacity of 40.00 GiB of which " + free +
         " is free. Including non-PyTorch memory, this process has " + own +
         " memory in use. Of the allocated memory " + own +
         " is allocated by PyTorch, and 1.00 MiB is reserved by "
         "PyTorch but unallocated.\n";
}

// Logs of named ranks, as a folder gives them.
std::vector<Finding> findings_of(const std::vector<std::pair<std::string, std::string>>& logs) {
  std::vector<TextEvidence> read;
  for (const auto& [name, text] : logs) read.push_back(read_text(text, name));
  const TextFacts facts = find_text_facts(read);
  return find_findings({.run = nullptr, .text = &facts});
}

bool says_shared(const std::vector<std::pair<std::string, std::string>>& logs) {
  const std::vector<Finding> findings = findings_of(logs);
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.id == "ranks-share-card"; });
}

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

std::string claim_of(const std::string& text);

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
std::string claim_of(const std::string& text) {
  const std::vector<Finding> findings = findings_of({{"a.log", text}});
  return findings.empty() ? "" : findings.front().claim.key;
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

std::string frame(std::string file, std::string function, std::string code) {
  return "  File \"" + file + "\", line 1, in " + function + "\n    " + code + "\n";
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

std::vector<Finding> findings_of(const Case& found) {
  std::vector<Finding> all;
  for (const Cause& cause : causes()) {
    for (Finding& finding : cause.find({.run = nullptr, .text = &found.facts})) all.push_back(std::move(finding));
  }
  return all;
}

bool proposes(const Finding& finding, std::string_view remedy) {
  return std::any_of(finding.changes.begin(), finding.changes.end(),
                     [&](const Change& change) { return change.remedy == remedy; });
}

TEST(Rules, HeldAndFreeMemoryThatWouldJoinAreNotCalledTooLittle) {
  std::string message = oom("2.50 GiB", "23.65 GiB", "20.10 GiB", "1.19 GiB", "21.98 GiB");
  message.pop_back();  // the wording since 1.10: before, there was no setting
  message += " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.\n";
  const auto found = facts_of({message});
  const std::vector<Finding> all = findings_of(*found);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().id, "capacity");
  EXPECT_EQ(all.front().because.key, "log.capacity-in-pieces.because");
  EXPECT_TRUE(proposes(all.front(), "allocator-setting"));
}

TEST(Rules, FragmentationDoesNotProposeToEmptyTheCache) {
  const auto found = facts_of({oom("2.00 GiB", "16.00 GiB", "8.00 GiB", "500.00 MiB", "14.50 GiB")});
  const std::vector<Finding> all = findings_of(*found);
  ASSERT_FALSE(all.empty());
  EXPECT_FALSE(proposes(all.front(), "release-cache"));
  EXPECT_TRUE(proposes(all.front(), "static-shapes"));
  EXPECT_TRUE(proposes(all.front(), "reuse-buffers"));
}

TEST(Rules, ASettingThatIsOnIsNotProposedAgain) {
  const auto found = facts_of({"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python t.py\n" +
                               oom("2.00 GiB", "16.00 GiB", "8.00 GiB", "500.00 MiB", "14.50 GiB")});
  for (const Finding& finding : findings_of(*found)) EXPECT_FALSE(proposes(finding, "allocator-setting"));
}

TEST(Rules, NoHalfPrecisionOnCardsWithoutIt) {
  const std::string full = oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB");
  for (const Finding& finding : findings_of(*facts_of({"Tesla P100-PCIE-16GB\n" + full})))
    EXPECT_FALSE(proposes(finding, "mixed-precision"));
  for (const Finding& finding : findings_of(*facts_of({"Tesla V100-SXM2-16GB\n" + full}))) {
    for (const Change& change : finding.changes) {
      for (const std::string& command : change.commands) EXPECT_EQ(command.find("bfloat16"), std::string::npos);
    }
  }
}

TEST(Rules, AnEvictionIsTheNodes) {
  const auto found = facts_of({"The node was low on resource: memory. Container main was using 9Gi"});
  EXPECT_EQ(found->facts.kind, Kind::host_oom_killed);
  const std::vector<Finding> all = findings_of(*found);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().changes.front().text.key, "remedy.raise-cgroup-limit.evicted");
}

TEST(Rules, AForkIsClaimedWhereOneIsSeen) {
  EXPECT_EQ(findings_of(*facts_of({"OSError: [Errno 12] Cannot allocate memory"})).front().claim.key,
            "log.host-allocation-bare.claim");
  EXPECT_EQ(findings_of(*facts_of({frame("/lib/subprocess.py", "_execute_child", "self.pid = _fork_exec(") +
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

// ---- what was pasted beside the message
// ------------------------------------------------------------------------------

std::vector<std::string> evidence_keys(const Case& given) {
  std::vector<std::string> keys;
  for (const Cause& cause : causes()) {
    for (const Finding& finding : cause.find({.run = nullptr, .text = &given.facts})) {
      for (const FindingEvidence& evidence : finding.evidence) keys.push_back(evidence.text.key);
    }
  }
  return keys;
}

bool has_key(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

TEST(Listings, WhoHoldsTheCard) {
  const auto given = facts_of({oom("20.00 MiB", "16.00 GiB", "1.00 GiB", "5.00 MiB", "1.10 GiB") +
                               "| NVIDIA-SMI 500.10    Driver Version: 500.10 |\n"
                               "|   0  Some Card           On   | 00000000:01:00.0 Off |   0 |\n"
                               "| N/A   40C    P0    50W / 300W |  16000MiB / 16384MiB |      0%      Default |\n"
                               "|    0   N/A  N/A      4321      C   python                          14000MiB |\n"});
  const std::vector<std::string> keys = evidence_keys(*given);
  EXPECT_TRUE(has_key(keys, "log.listed-card"));
  EXPECT_TRUE(has_key(keys, "log.listed-process"));
}

TEST(Listings, HowLargeSharedMemoryIs) {
  const auto given = facts_of(
      {"ERROR: Unexpected bus error encountered in worker.\nshm              64M   64M     0 100% /dev/shm\n"});
  EXPECT_TRUE(has_key(evidence_keys(*given), "log.listed-shm"));
}

TEST(Growth, ThreeFailuresWithMoreEachTime) {
  std::string log;
  for (const char* allocated : {"8.00 GiB", "10.00 GiB", "13.00 GiB"})
    log += oom("2.00 GiB", "16.00 GiB", allocated, "30.00 MiB", "14.50 GiB");
  EXPECT_EQ(facts_of({log})->facts.growth.size(), 3U);
}

TEST(Growth, TheLastFailureIsTheOne) {
  std::string log;
  for (const char* allocated : {"12.11 GiB", "13.02 GiB", "13.90 GiB", "14.61 GiB"})
    log += oom("256.00 MiB", "15.77 GiB", allocated, "100.00 MiB", "14.90 GiB");
  const auto found = facts_of({log});
  EXPECT_EQ(found->facts.failure, &found->logs.front().messages.back());
  const std::vector<Finding> findings = find_findings({.run = nullptr, .text = &found->facts});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().id, "memory-grows");
}
// A traceback with the line of one call of `function` and the message of a full card.
std::string failed_in(const std::string& function, int line, const char* tried) {
  return "Traceback (most recent call last):\n  File \"train.py\", line " + std::to_string(line) + ", in " + function +
         "\n    step(size)\n  File \"train.py\", line 20, in step\n    loss = model(x)\n" +
         oom(tried, "24.00 GiB", "22.70 GiB", "200.00 MiB", "23.00 GiB");
}
TEST(Retry, WithinTheHandlerIsHeldByItsException) {
  const std::string handling = "\nDuring handling of the above exception, another exception occurred:\n\n";
  const std::vector<Finding> findings =
      findings_of({{"a.log", failed_in("train", 40, "512.00 MiB") + handling + failed_in("train", 43, "256.00 MiB")}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().id, "exception-holds-tensors");
  EXPECT_EQ(findings.front().changes.front().remedy, "clear-traceback");
  // Two ranks, or a loop that tries again behind its handler.
  EXPECT_NE(
      findings_of({{"a.log", failed_in("train", 40, "512.00 MiB") + failed_in("train", 40, "256.00 MiB")}}).front().id,
      "exception-holds-tensors");
}
TEST(SecondModel, IsNamedWhereTheCardIsAllocatedAlready) {
  const std::string making = "Fold 1 finished\nFold 2\nTraceback (most recent call last):\n" +
                             frame("fold.py", "main", "model = BertModel.from_pretrained(name).to(\"cuda\")");
  const std::vector<Finding> findings =
      findings_of({{"a.log", making + oom("90.00 MiB", "14.75 GiB", "14.01 GiB", "60.00 MiB", "14.20 GiB")}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().id, "second-model");
  EXPECT_EQ(findings.front().changes.front().remedy, "delete-references");
  // Others hold the card.
  EXPECT_NE(
      findings_of({{"a.log", making + oom("90.00 MiB", "14.75 GiB", "1.01 GiB", "60.00 MiB", "1.20 GiB")}}).front().id,
      "second-model");
}
// nvidia-smi's row of card 0.
std::string listed(const char* used, const char* total) {
  return std::string(
             "| NVIDIA-SMI 550.54 Driver Version: 550.54 |\n"
             "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |\n"
             "| N/A   30C    P0    60W / 400W |  ") +
         used + "MiB / " + total + "MiB |      0%      Default |\n";
}
TEST(Listings, ReadAfterTheFailureShowAnEmptyCard) {
  const std::string message = oom("2.00 GiB", "79.15 GiB", "76.00 GiB", "1.12 GiB", "76.30 GiB");
  EXPECT_TRUE(listing_is_later(facts_of({message + listed("1", "81920")})->facts));
  EXPECT_FALSE(listing_is_later(facts_of({message + listed("79000", "81920")})->facts));
}
TEST(Listings, OfLargerCardsShowASlice) {
  const std::string message = oom("512.00 MiB", "9.50 GiB", "8.70 GiB", "100.00 MiB", "8.85 GiB");
  EXPECT_TRUE(is_slice(facts_of({message + listed("9700", "81920")})->facts));
  EXPECT_FALSE(is_slice(facts_of({message + listed("9700", "10240")})->facts));
}
TEST(SharedMemory, IsLessSureWhereDfShowsRoom) {
  const std::string error =
      "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
      "shared memory (shm).\n";
  const std::string df =
      "Filesystem      Size  Used Avail Use% Mounted on\nshm              63G   24M   63G   1% /dev/shm\n";
  EXPECT_EQ(facts_of({error})->facts.confidence, Confidence::high);
  EXPECT_EQ(facts_of({error + df})->facts.confidence, Confidence::medium);
}
TEST(Victim, HeldSharedMemoryToo) {
  const std::string killed =
      "Memory cgroup out of memory: Killed process 42 (python) total-vm:34567890kB, "
      "anon-rss:1048576kB, file-rss:0kB, shmem-rss:";
  const auto held = [](const Finding& finding) {
    const auto value = std::find_if(finding.claim.values.begin(), finding.claim.values.end(),
                                    [](const PhraseValue& each) { return each.name == "held"; });
    return value->phrases.front().key;
  };
  EXPECT_EQ(held(findings_of({{"a.log", killed + "4194304kB, UID:0\n"}}).front()), "text.victim-held-shared");
  EXPECT_EQ(held(findings_of({{"a.log", killed + "0kB, UID:0\n"}}).front()), "text.victim-held");
}
TEST(OtherFrameworks, AreNamedWithTheirFigures) {
  const auto claim = [](const char* text) {
    return findings_of({{std::string("a.log"), std::string(text)}}).front().claim.key;
  };
  EXPECT_EQ(claim("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 18.32G of 15.48G hbm.\n"),
            "log.framework-sum.claim");
  const char* tensor =
      "OOM when allocating tensor with shape[9,9] and type float on /device:GPU:0 by allocator GPU_0_bfc\n";
  EXPECT_EQ(claim(tensor), "log.framework-bare.claim");
  const std::string allocator = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB (rounded to 1)\n";
  const Finding finding = findings_of({{"a.log", allocator + tensor}}).front();
  EXPECT_EQ(finding.claim.key, "log.framework-request.claim");
  EXPECT_TRUE(std::all_of(finding.changes.begin(), finding.changes.end(),
                          [](const Change& change) { return change.commands.empty(); }));
}
TEST(OtherFrameworks, ATensorOnTheCpuIsOfTheHost) {
  const auto found =
      facts_of({"OOM when allocating tensor with shape[50000,50000] and type float on "
                "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu [Op:MatMul]\n"});
  EXPECT_EQ(found->facts.kind, Kind::host_alloc_failed);
}
TEST(RanksInOneLog, TheStampsOfOtherRanksAreNotItsOwn) {
  const std::string failure =
      "[rank1]: 2030-01-01 10:00:00 Traceback (most recent call last):\n"
      "[rank0]: 2030-01-01 10:30:00 Watchdog caught collective operation timeout\n[rank1]: " +
      oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB");
  const auto given = facts_of({failure});
  ASSERT_EQ(given->facts.ranks.size(), 2U);
  EXPECT_EQ(given->facts.ranks.front().rank, 1);
}

TEST(RanksInOneLog, WhoWaitedDidNotFailFirst) {
  const auto given = facts_of({"[rank0]: Watchdog caught collective operation timeout\n[rank1]: " +
                               oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")});
  ASSERT_EQ(given->facts.ranks.size(), 2U);
  EXPECT_EQ(given->facts.ranks.front().rank, 1);
}

TEST(Growth, SaysInWhichPhaseEachFailureWas) {
  const auto failed_in = [](const char* code, const char* allocated) {
    return "Traceback (most recent call last):\n  File \"a.py\", line 3, in main\n    " + std::string(code) + "\n" +
           oom("2.00 GiB", "16.00 GiB", allocated, "30.00 MiB", "14.50 GiB");
  };
  const std::string same = failed_in("loss.backward()", "8.00 GiB") + failed_in("loss.backward()", "10.00 GiB") +
                           failed_in("loss.backward()", "13.00 GiB");
  const std::string other = failed_in("model.cuda()", "8.00 GiB") + failed_in("loss.backward()", "10.00 GiB") +
                            failed_in("loss.backward()", "13.00 GiB");
  const auto growth = [](const std::string& log) {
    std::vector<Finding> findings = findings_of({{"a.log", log}});
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [](const Finding& finding) { return finding.id == "memory-grows"; });
    return found == findings.end() ? Finding{} : *found;
  };
  EXPECT_EQ(growth(same).instant.phase, Phase::backward);
  EXPECT_EQ(growth(other).instant.phase, Phase::unknown);
  EXPECT_EQ(growth(other).evidence.back().text.key, "log.growth-point-in");
}

TEST(Figures, AnImpossibleRequestIsNoLackOfMemory) {
  for (const char* tried : {"17179869184.00 GiB", "-2.00 GiB"}) {
    EXPECT_EQ(kind_of(oom(tried, "16.00 GiB", "8.00 GiB", "4.00 GiB", "8.50 GiB")), Kind::not_memory) << tried;
    EXPECT_EQ(kind_of("CUDA out of memory. Tried to allocate " + std::string(tried)), Kind::not_memory) << tried;
  }
}

TEST(Figures, WhatIsMissingIsNotClaimed) {
  const auto claim = [](const std::string& log) { return findings_of({{"a.log", log}}).front().claim.key; };
  EXPECT_EQ(claim("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity; 9.00 GiB alre"),
            "log.no-figures-allocator.claim");
  EXPECT_EQ(claim(oom("2.00 GiB", "16.00 GiB", "9.00 GiB", "17179869184.00 GiB", "9.50 GiB")),
            "log.figures-impossible.claim");
}

std::string sentences(std::string tried, std::string free, std::string process, std::string allocated) {
  return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " + tried +
         ". GPU 0 has a total capacity of 23.65 GiB of which " + free +
         " is free. Including non-PyTorch memory, this process has " + process +
         " memory in use. Of the allocated memory " + allocated + " is reserved by PyTorch but unallocated.\n";
}

// Name and bytes of each row; they add up to the total of the card where one is known.
std::vector<std::pair<std::string, int64_t>> balance_of(const std::string& text) {
  const auto found = facts_of({text});
  std::vector<std::pair<std::string, int64_t>> rows;
  int64_t sum = 0;
  for (const BalanceRow& row : found->facts.balance) {
    rows.emplace_back(row.name.key, row.bytes.value_or(0));
    sum += row.bytes.value_or(0);
  }
  EXPECT_EQ(sum, found->facts.card.total.value_or(sum)) << text;
  return rows;
}

using Rows = std::vector<std::pair<std::string, int64_t>>;
constexpr int64_t kGibibyte = int64_t{1} << 30;

TEST(Balance, KeepsThePossibleRowsBesideAnImpossibleFigure) {
  const std::string wrapped = "17179869184.00 GiB";
  const std::string plain = "21.50 GiB is allocated by PyTorch, and 0.50 GiB";
  const Rows no_free = balance_of(sentences("2.00 GiB", wrapped, "22.70 GiB", plain));
  ASSERT_EQ(no_free.size(), 4U);
  EXPECT_EQ(no_free[0], std::pair(std::string("text.row-allocated"), 43 * kGibibyte / 2));
  EXPECT_EQ(no_free[3].first, "text.row-not-accounted");
  const Rows no_unused =
      balance_of(sentences("2.00 GiB", "400.00 MiB", "23.00 GiB", "21.50 GiB is allocated by PyTorch, and " + wrapped));
  ASSERT_EQ(no_unused.size(), 3U);
  EXPECT_EQ(no_unused[1].first, "text.row-free");
  const Rows no_allocated = balance_of(
      sentences("2.00 GiB", "400.00 MiB", "23.00 GiB", wrapped + " is allocated by PyTorch, and 100.00 MiB"));
  ASSERT_EQ(no_allocated.size(), 3U);
  EXPECT_EQ(no_allocated[0], std::pair(std::string("text.row-own"), 23 * kGibibyte));
  EXPECT_EQ(balance_of(oom("2.00 GiB", "0 bytes", "3.00 GiB", "0 bytes", "4.00 GiB")),
            (Rows{{"text.row-allocated", 3 * kGibibyte}, {"text.row-unused", kGibibyte}}));
}

TEST(Balance, NamesWhatIsFreeInPrivatePools) {
  const std::string text =
      sentences("2.00 GiB", "400.00 MiB", "23.25 GiB",
                "21.50 GiB is allocated by PyTorch, with 1.50 GiB allocated in private pools (e.g., CUDA Graphs), and "
                "0.50 GiB");
  const Rows rows = balance_of(text);
  ASSERT_GE(rows.size(), 2U);
  EXPECT_EQ(rows[0], std::pair(std::string("text.row-allocated"), 20 * kGibibyte));
  EXPECT_EQ(rows[1], std::pair(std::string("text.row-pools"), 3 * kGibibyte / 2));
  const auto found = facts_of({text});
  EXPECT_EQ(found->facts.confidence, Confidence::medium);
  const Finding finding = findings_of(*found).front();
  EXPECT_EQ(finding.claim.key, "log.capacity-in-pools.claim");
  EXPECT_TRUE(proposes(finding, "pool-limit"));
}

TEST(Figures, TwoCausesAreNoCertainty) {
  for (const char* free : {"700.00 MiB", "1.10 GiB"}) {
    const auto found =
        facts_of({sentences("1.20 GiB", free, "22.50 GiB", "21.50 GiB is allocated by PyTorch, and 600.00 MiB")});
    const Finding finding = findings_of(*found).front();
    EXPECT_TRUE(proposes(finding, "allocator-setting"));
    EXPECT_EQ(finding.confidence, Confidence::medium);
    EXPECT_NE(std::count(found->facts.also.begin(), found->facts.also.end(), Kind::gpu_oom_fragmentation), 0);
  }
}

std::string stamped(const std::string& stamp, const std::string& message) { return stamp + " " + message + "\n"; }

TEST(RankOrder, ComparesStampsInUtcWhereAllNameTheirZone) {
  const std::string message = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB";
  const auto by_offset =
      facts_of({stamped("2024-05-11T14:00:05+02:00", message), stamped("2024-05-11T13:00:01Z", message)});
  EXPECT_TRUE(by_offset->facts.order_is_known);
  EXPECT_EQ(by_offset->facts.ranks.front().log, 0U);
  const auto mixed = facts_of({stamped("2024-05-11T14:00:05+02:00", message), stamped("2024-05-11 13:00:01", message)});
  EXPECT_FALSE(mixed->facts.order_is_known);
  const auto coarse = facts_of({stamped("2024-05-11 14:00:05.5", message), stamped("2024-05-11 14:00:05", message)});
  EXPECT_FALSE(coarse->facts.order_is_known);
}

TEST(Endings, SayNoMoreThanTheLog) {
  const auto claim = [](const std::string& text) { return findings_of({{"a.log", text}}).front().claim.key; };
  EXPECT_EQ(claim("A process in the process pool was terminated abruptly while the future was running.\n"),
            "log.vanished.claim");
  EXPECT_EQ(claim("tcmalloc: large alloc 8589934592 bytes == 0x7f1200000000 @  0x7f\n"), "log.host-large.claim");
  EXPECT_EQ(claim("sending SIGTERM to process 9 uid 0 \"python\": oom_score 800, VmRSS 700 MiB\n"),
            "log.host-killed-monitor.claim");
  EXPECT_EQ(claim("python invoked oom-killer: gfp_mask=0xcc0, order=0\n"), "log.host-killed.claim");
  EXPECT_EQ(claim("train.sh: line 3: 4242 Killed   python train.py\n"), "log.killed-unexplained.claim");
  EXPECT_EQ(facts_of({"step 1 loss 2.0\nKeyboardInterrupt\n"})->facts.confidence, Confidence::high);
}

TEST(Endings, AMarkOfAnInterruptLeavesMemoryOpen) {
  const auto found = facts_of({"Loading checkpoint shards:  33% 1/3 [00:20<00:41, 20.61s/it]^C\n"});
  EXPECT_EQ(found->facts.kind, Kind::not_memory);
  EXPECT_EQ(found->facts.confidence, Confidence::low);
  EXPECT_EQ(found->facts.also, std::vector<Kind>{Kind::host_oom_killed});
  EXPECT_EQ(findings_of(*found).front().claim.key, "log.not-memory-interrupt-mark.claim");
}

TEST(RuntimeHeap, IsRaisedWhereItsRuntimeSetsIt) {
  const auto commands = [](const std::string& text) {
    const Finding finding = findings_of({{"a.log", text}}).front();
    return finding.changes.empty() ? std::string{} : finding.changes.front().commands.front();
  };
  EXPECT_NE(commands("java.lang.OutOfMemoryError: Java heap space\n").find("-Xmx"), std::string::npos);
  EXPECT_NE(commands("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n")
                .find("--max-old-space-size"),
            std::string::npos);
}

TEST(Mapping, OfOneLargeFileIsNoLackOfDescriptors) {
  const auto found = facts_of(
      {"RuntimeError: unable to mmap 8589934592 bytes from file </models/weights.bin>: Cannot allocate memory (12)\n"});
  EXPECT_EQ(found->facts.kind, Kind::host_alloc_failed);
  EXPECT_TRUE(found->facts.also.empty());
  EXPECT_FALSE(proposes(findings_of(*found).front(), "sharing-strategy"));
}

TEST(OtherGpu, IsTheEmptiestOfTheListing) {
  const std::string smi =
      "| NVIDIA-SMI 550.54 Driver Version: 550.54 |\n"
      "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |\n"
      "| N/A   30C    P0    60W / 400W |  80000MiB / 81920MiB |      0%      Default |\n"
      "|   1  NVIDIA A100-SXM4-80GB          On  | 00000000:0F:00.0 Off |                    0 |\n"
      "| N/A   30C    P0    60W / 400W |  70000MiB / 81920MiB |      0%      Default |\n"
      "|   2  NVIDIA A100-SXM4-80GB          On  | 00000000:47:00.0 Off |                    0 |\n"
      "| N/A   30C    P0    60W / 400W |    400MiB / 81920MiB |      0%      Default |\n";
  const Finding finding =
      findings_of(*facts_of({oom("2.00 GiB", "79.15 GiB", "1.00 GiB", "20.00 MiB", "1.10 GiB") + smi})).front();
  const auto other = std::find_if(finding.changes.begin(), finding.changes.end(),
                                  [](const Change& change) { return change.remedy == "other-gpu"; });
  ASSERT_NE(other, finding.changes.end());
  EXPECT_EQ(other->commands.front(), "export CUDA_VISIBLE_DEVICES=2");
}

TEST(Evaluation, OffersSimplerChangesBeforeOffload) {
  const Finding finding = findings_of(*facts_of({"Traceback (most recent call last):\n"
                                                 "  File \"train.py\", line 9, in validate\n"
                                                 "    with torch.no_grad(): out = model(x)\n" +
                                                 oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")}))
                              .front();
  ASSERT_GE(finding.changes.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_NE(finding.changes[i].remedy, "offload");
}

TEST(PhaseByProgress, TheSecondStep) {
  const auto given = facts_of({"  1%|1         | 1/100 [00:03<05:00,  3.00s/it, loss=2.5]\n" +
                               oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")});
  EXPECT_EQ(given->facts.phase, Phase::second_step);
}

using Logs = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> remedies_for(const std::string& text) {
  std::vector<std::string> ids;
  for (const Finding& finding : findings_of(Logs{{"a.log", text}})) {
    for (const Change& change : finding.changes) ids.push_back(change.remedy);
  }
  return ids;
}

bool proposes(const std::string& text, std::string_view remedy) {
  const std::vector<std::string> ids = remedies_for(text);
  return std::find(ids.begin(), ids.end(), remedy) != ids.end();
}

const std::string kShmWrite = "RuntimeError: unable to write to file </torch_12_34_5>: No space left on device (28)\n";

TEST(SharedMemory, IsNotToBeLargerWhereItHasRoom) {
  EXPECT_FALSE(proposes("shm              64G   12M   64G   1% /dev/shm\n" + kShmWrite, "larger-shm"));
  EXPECT_TRUE(proposes("shm              64M   64M     0 100% /dev/shm\n" + kShmWrite, "larger-shm"));
}

TEST(SharedMemory, IsWantedByOthersThanWorkersToo) {
  const std::vector<Finding> findings = findings_of(
      Logs{{"a.log",
            "ray.exceptions.ObjectStoreFullError: Failed to put object abc in object store because it is full. "
            "Object size is 1073741824 bytes.\n"}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().claim.key, "log.shared-memory-ray.claim");
  EXPECT_FALSE(proposes("loading weights: 100%\nBus error (core dumped)\n", "fewer-workers"));
}

TEST(Limits, WhatIsProposedGoesBeyondThem) {
  const std::vector<Finding> findings = findings_of(
      Logs{{"a.log", "slurmstepd: error: Job 123 exceeded memory limit (335585280 > 335544320), being killed\n"}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().changes.front().commands.front(), "#SBATCH --mem=640G");
}

TEST(SharedCard, ItsOwnRanksAreNoLeftovers) {
  const std::vector<Finding> findings = findings_of(Logs{{"rank0/train.log", shared(0, "18.00 GiB", "10.00 MiB")},
                                                         {"rank1/train.log", shared(0, "18.00 GiB", "10.00 MiB")}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().changes.front().remedy, "share-card");
}

TEST(HostAllocation, OfACheckpointIsMappedInstead) {
  const std::string refused =
      "RuntimeError: [enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: can't allocate memory: you "
      "tried "
      "to allocate 13743895347 bytes. Error code 12 (Cannot allocate memory)\n";
  const std::vector<std::string> ids = remedies_for(
      "Traceback (most recent call last):\n  File \"train.py\", line 20, in main\n"
      "    model.load_state_dict(torch.load(\"x.pt\", map_location=\"cpu\"))\n" +
      refused);
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(ids.front(), "load-on-cpu");
  EXPECT_TRUE(proposes("Microsoft Windows 11\n" + refused, "raise-page-file"));
}

TEST(Evaluation, OfAFrameworkHasNoGradientsAlready) {
  const std::string full = oom("2.00 GiB", "79.15 GiB", "76.00 GiB", "1.50 GiB", "77.00 GiB");
  EXPECT_FALSE(
      proposes("INFO: Sanity Checking DataLoader 0\nTraceback (most recent call last):\n"
               "  File \"pl.py\", line 1, in validation_step\n    y=self(x)\n" +
                   full,
               "no-grad"));
  const std::vector<std::string> ids = remedies_for(
      "Traceback (most recent call last):\n"
      "  File \"/x/site-packages/transformers/trainer.py\", line 3451, in evaluation_loop\n    a = b\n"
      "  File \"/x/site-packages/transformers/trainer_pt_utils.py\", line 100, in nested_concat\n    return c\n" +
      full);
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(ids.front(), "results-to-cpu");
  EXPECT_TRUE(proposes(
      "Traceback (most recent call last):\n  File \"t.py\", line 1, in validate\n    y=net(x)\n" + full, "no-grad"));
}

std::string proof_of(const std::string& text) {
  const std::vector<std::string> lines = proof_lines(facts_of({text})->facts, Language::english);
  return lines.empty() ? "" : lines.front();
}

TEST(Claims, SayNoMoreThanTheMessage) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED\n", "log.library-cudnn.claim"},
      {"RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR\n", "log.library-cudnn-memory.claim"},
      {"RuntimeError: FIND was unable to find an engine to execute this computation\n",
       "log.library-cudnn-memory.claim"},
      {"max seq len (64) is larger than the maximum number of tokens that can be stored in KV cache (32).\n",
       "log.engine-context.claim"},
      {"ValueError: No available memory for the cache blocks.\n", "log.engine-no-room.claim"},
      {"RuntimeError: Invalid buffer size: 28.84 GB\n", "log.buffer-limit.claim"},
      {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
       "log.host-killed-program.claim"},
      {"systemd[1]: x.service: A process of this unit has been killed by the OOM killer.\n",
       "log.host-killed-unit.claim"},
      {"RuntimeError: DataLoader worker (pid 7) is killed by signal: Terminated.\n",
       "log.loader-worker-terminated.claim"}};
  for (const auto& [text, claim] : cases) EXPECT_EQ(claim_of(text), claim) << text;
}

TEST(Claims, OfAWorkerThatCrashedLookAtSharedMemory) {
  const std::string crash = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation fault.\n";
  EXPECT_EQ(claim_of("shm 64M 64M 0 100% /dev/shm\n" + crash), "log.shared-memory-crash.claim");
  EXPECT_EQ(facts_of({"shm 64M 64M 0 100% /dev/shm\n" + crash})->facts.confidence, Confidence::medium);
  EXPECT_EQ(claim_of("shm 64M 4M 60M 7% /dev/shm\n" + crash), "log.not-memory-crash.claim");
}

TEST(Measures, WhatAMessageAdvisesIsNotInForce) {
  const std::unique_ptr<Case> told =
      facts_of({"RuntimeError: Too many open files. Please change the sharing strategy by calling "
                "`torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code\n"});
  EXPECT_FALSE(told->facts.around.in_force.contains("sharing-strategy"));
  const std::unique_ptr<Case> set =
      facts_of({"torch.multiprocessing.set_sharing_strategy('file_system')\nRuntimeError: Too many open files.\n"});
  EXPECT_TRUE(set->facts.around.in_force.contains("sharing-strategy"));
}

TEST(Windows, IsTheOneThatWritesPathsBackwards) {
  EXPECT_TRUE(facts_of({"RuntimeError: [enforce fail at ..\\c10\\core\\impl\\alloc_cpu.cpp:72] data. "
                        "DefaultCPUAllocator: not enough memory: you tried to allocate 5368709120 bytes.\n"})
                  ->facts.around.is_windows);
}

TEST(ProofLines, AreThoseOfTheBackend) {
  EXPECT_NE(
      proof_of("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
               "of 15.91 GiB. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 500.00 MiB is "
               "reserved by PyTorch but unallocated.\n")
          .find("torch.xpu"),
      std::string::npos);
  EXPECT_NE(proof_of("torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
                     "Currently allocated     : 22.10 GiB\nRequested               : 512.00 MiB\n"
                     "Device limit            : 23.64 GiB\nFree (according to CUDA): 12.00 MiB\n")
                .find("backend:native"),
            std::string::npos);
  EXPECT_NE(proof_of("slurmstepd: error: *** JOB 12345 ON node01 CANCELLED AT 2024-05-01T10:00:00 DUE TO TIME LIMIT "
                     "***\n")
                .find("sacct"),
            std::string::npos);
}

}  // namespace
}  // namespace oomscope
