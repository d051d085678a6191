"""Records jobs of several ranks on purpose: torchrun --nproc-per-node 4 tests/gpu/record_ranks.py MODE FOLDER

MODE: pipeline (a stage a rank), tensor (a share of each layer a rank), copy_on_rank0, leak_on_rank1, one_fails.
"""
import copy
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

MODE, FOLDER = sys.argv[1:3]
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WIDTH, WORDS, BATCH, LENGTH, LAYERS = 1024, 32000, 8, 512, 6
FIRST = MODE != "pipeline" or RANK == 0
LAST = MODE != "pipeline" or RANK == RANKS - 1


class Block(nn.Module):
    def __init__(self, shares):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH // shares)
        self.down = nn.Linear(4 * WIDTH // shares, WIDTH)

    def forward(self, x):
        hidden = self.up(self.norm(x))
        return x + self.down(F.gelu(hidden))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH) if FIRST else None
        shares = RANKS if MODE == "tensor" else 1
        self.blocks = nn.ModuleList([Block(shares) for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, WORDS) if LAST else None

    def forward(self, x, target):
        if self.embedding:
            x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        if self.head:
            x = self.head(x)
            x = F.cross_entropy(x.flatten(0, 1).float(), target.flatten())
        return x


def step(model, optimizer):
    target = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
    x, gradient = target, None
    if not FIRST:
        x = torch.empty(BATCH, LENGTH, WIDTH, device="cuda", requires_grad=True)
        dist.recv(x.detach(), RANK - 1)
    out = model(x, target)
    if not LAST:
        dist.send(out.detach(), RANK + 1)
        gradient = torch.empty_like(out)
        dist.recv(gradient, RANK + 1)
    out.backward(gradient)
    if not FIRST:
        dist.send(x.grad, RANK - 1)
    optimizer.step()
    optimizer.zero_grad()


def main():
    torch.cuda.set_device(RANK)
    dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    if MODE == "one_fails" and RANK == RANKS - 1:
        torch.cuda.set_per_process_memory_fraction(0.023)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    copied, kept = None, []
    try:
        for _ in range(4):
            step(model, optimizer)
            if MODE == "copy_on_rank0" and RANK == 0:
                copied = copy.deepcopy(model.state_dict())
            if MODE == "leak_on_rank1" and RANK == 1:
                kept.append(torch.zeros(8, 1024, 4096, device="cuda"))
    except torch.OutOfMemoryError as error:
        print(RANK, error, flush=True)
    os.makedirs(FOLDER, exist_ok=True)
    torch.cuda.memory._dump_snapshot(f"{FOLDER}/rank{RANK}.pickle")
    os._exit(0)  # ranks that wait for a failed one must not keep the others


main()
