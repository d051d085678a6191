"""Records staged causes on small models of several kinds, to test the rules of `oomscope why`. Needs a GPU and PyTorch.

    python3 tests/gpu/record_causes.py OUT [CASE...]

One process a case; each writes OUT/CASE.pickle. The name of a case begins with the id of the cause that it stages.
"""
import subprocess, sys, tempfile
import torch, torch.nn as nn, torch.nn.functional as F
C = {}
def case(f): C[f.__name__] = f; return f
def cap(mib):  # so much more than what the steps so far have needed
    torch.cuda.set_per_process_memory_fraction((torch.cuda.max_memory_reserved() + mib * 2**20) / torch.cuda.mem_get_info()[1])
R = lambda *s: torch.randn(*s, device="cuda")
I = lambda n, *s: torch.randint(0, n, s, device="cuda")
class ViT(nn.Module):
    def __init__(self, d=384, n=6, classes=100, eager=False):
        super().__init__(); self.eager = eager; self.patch = nn.Conv2d(3, d, 16, 16); self.q = nn.Linear(d, 3 * d)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 6, 4 * d, batch_first=True), n); self.head = nn.Linear(d, classes)
    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        if self.eager: q, k, v = self.q(x).chunk(3, -1); x = (q @ k.transpose(1, 2) / 20).softmax(-1) @ v
        return self.head(self.enc(x).mean(1))
class Lm(nn.Module):
    def __init__(self, v=5000, d=512):
        super().__init__(); self.e = nn.Embedding(v, d); self.r = nn.LSTM(d, d, 2, batch_first=True); self.o = nn.Linear(d, v)
    def forward(self, x, h=None): y, h = self.r(self.e(x), h); return self.o(y), h
class Seq(nn.Module):
    def __init__(self, v=2000, d=512): super().__init__(); self.e = nn.Embedding(v, d); self.t = nn.Transformer(d, 8, 3, 3, 2048, batch_first=True); self.o = nn.Linear(d, v)
    def forward(self, a, b): return self.o(self.t(self.e(a), self.e(b)))
class Mlp(nn.Module):
    def __init__(self, d=3072, n=6): super().__init__(); self.l = nn.ModuleList(nn.Linear(d, d) for _ in range(n))
    def forward(self, x):
        for l in self.l: x = F.gelu(l(x))
        return x
def conv(a, b): return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())
class Net(nn.Module):
    def __init__(self): super().__init__(); self.a, self.b, self.c, self.o = conv(3, 64), conv(64, 128), conv(192, 64), nn.Conv2d(64, 3, 1)
    def forward(self, x): y = self.a(x); z = F.interpolate(self.b(F.max_pool2d(y, 2)), scale_factor=2); return self.o(self.c(torch.cat([y, z], 1)))
def vit(n=3, b=32, **k):
    m = ViT(**k).cuda(); o = torch.optim.AdamW(m.parameters())
    for i in range(n): fit(m, o, R(b, 3, 224, 224), I(100, b))
    return m, o
def fit(m, o, x, y): loss = F.cross_entropy(m(x), y); o.zero_grad(); loss.backward(); o.step()
def mlp(n=3, opt=torch.optim.Adam, d=3072):
    m = Mlp(d).to("cuda"); o = opt(m.parameters(), lr=.01)
    for i in range(n): dense(m, o)
    return m, o
def dense(m, o, b=256): m(R(b, m.l[0].in_features)).square().mean().backward(); o.step(); o.zero_grad(set_to_none=True)
def lm(n=3, v=5000, b=16, s=128):
    m = Lm(v).cuda(); o = torch.optim.SGD(m.parameters(), .1, momentum=.9)
    for i in range(n): words(m, o, v, b, s)
    return m, o
def words(m, o, v, b, s): x = I(v, b, s); F.cross_entropy(m(x)[0].flatten(0, 1), x.flatten()).backward(); o.step(); o.zero_grad()
def seq(n=3, b=16, s=64):
    m = Seq().cuda(); o = torch.optim.Adam(m.parameters(), 1e-4)
    for i in range(n): pair(m, o, b, s)
    return m, o
def pair(m, o, b, s): x = I(2000, b, s); loss = F.cross_entropy(m(x, x).view(-1, 2000), x.view(-1)); loss.backward(); o.step(); o.zero_grad()
@case
def none_vit():
    m, o = vit()
    for e in range(2):
        m.eval()
        with torch.no_grad(): s = sum(m(R(64, 3, 224, 224)).argmax(1).float().mean() for i in range(3))
        m.train(); [fit(m, o, R(32, 3, 224, 224), I(100, 32)) for i in range(2)]
@case
def none_lm():
    m, o = lm(0)
    for s in (128, 64, 100, 128, 30, 128): words(m, o, 5000, 16, s)
@case
def none_net():
    m = Net().cuda(); o = torch.optim.RMSprop(m.parameters())
    for i in range(6):
        for j in range(2): x = R(4, 3, 256, 256); (F.mse_loss(m(x), x) / 2).backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.); o.step(); o.zero_grad()
@case
def none_mlp(): m, o = mlp(8, torch.optim.Adagrad)
@case
def graph_kept_vit():
    m, o = vit(2); cap(3000); log = []
    for i in range(60): x, y = R(16, 3, 224, 224), I(100, 16); p = m(x); aux = p.square().sum(); fit(m, o, x, y); log.append(aux)
@case
def graph_kept_hidden():
    m, o = lm(2); cap(1500); h = None
    for i in range(80): x = I(5000, 16, 128); p, h = m(x, h); l = F.cross_entropy(p.flatten(0, 1), x.flatten()); l.backward(retain_graph=True); o.zero_grad()
@case
def tensors_kept_lm():
    m, o = lm(2); cap(1500); p = []
    for i in range(90): x = I(5000, 16, 128); words(m, o, 5000, 16, 128); p.append(m(x)[0].detach())
@case
def grad_in_evaluation_seq():
    m, o = seq(3); cap(700); m.eval()
    for i in range(3): x = I(2000, 96, 96); a = F.cross_entropy(m(x, x).view(-1, 2000), x.view(-1)).item()
@case
def copy_of_weights_mlp(): m, o = mlp(2); cap(250); e = torch.optim.swa_utils.AveragedModel(m); f = torch.optim.swa_utils.AveragedModel(m)
@case
def copy_of_weights_best():
    m, o = mlp(2); cap(1000); best = []
    for i in range(9): dense(m, o); best.append({k: v.clone() for k, v in m.state_dict().items()})
@case
def checkpoint_on_gpu_vit():
    m, o = vit(2); f = tempfile.mktemp(); torch.save(dict(m=m.state_dict(), o=o.state_dict()), f); cap(120); d = torch.load(f, map_location="cuda"); m.load_state_dict(d["m"])
    for i in range(3): fit(m, o, R(96, 3, 224, 224), I(100, 96))
@case
def second_model_seq(): m, o = seq(3); cap(40); teacher = Mlp(4096, 12).cuda()
@case
def second_model_cells():
    old = []
    for i in range(9):
        m, o = mlp(2, d=2048); old.append((m, o))
        if i == 0: cap(1200)
@case
def logits_lm(): m, o = lm(0, 90000); cap(1500); words(m, o, 90000, 32, 128)
@case
def larger_batch_seq():
    m, o = seq(4); cap(60)
    for s in (64, 60, 64, 160): pair(m, o, 16, s)
@case
def attention_matrix_vit(): m = ViT(eager=True).cuda(); cap(1500); m(R(1, 3, 3072, 3072)).sum().backward()
@case
def optimizer_state_mlp(): m = Mlp(4096).cuda(); o = torch.optim.Adam(m.parameters()); cap(900); dense(m, o)
@case
def exception_holds_tensors_vit():
    m, o = vit(2); cap(900); kept = None
    for b in (256, 128, 64, 48):
        try: fit(m, o, R(b, 3, 224, 224), I(100, b)); break
        except torch.OutOfMemoryError as e: kept = e
@case
def input_size_net(): m = Net().cuda(); cap(2000); m(R(2, 3, 1792, 1792)).sum().backward()
@case
def growing_sizes_cache():
    cap(2000); c = R(1, 16, 8, 64)
    for i in range(4000): c = torch.cat([c, R(1, 16, 8 * i + 64, 64)], 2)
@case
def private_pool_graphs():
    m = Mlp(2048, 8).cuda(); keep = []
    m(R(64, 2048)); cap(900)
    for b in (4096, 2048, 1024):
        g = torch.cuda.CUDAGraph(); x = R(b, 2048)
        with torch.no_grad(), torch.cuda.graph(g): keep.append((g, m(x)))
    y = [R(4096, 4096) for i in range(20)]
@case
def small_blocks_metrics():
    cap(500); kept = []
    for i in range(3000): a = R(200, 512); b = R(8, 512); c = R(200, 512); kept.append(b); del a, c
@case
def pending_frees_prefetch():
    s = torch.cuda.Stream(); w = R(4096, 4096); cap(1200)
    for i in range(300):
        x = R(4096, 4096); x.record_stream(s)
        with torch.cuda.stream(s): [w @ w for _ in range(8)]
        del x
@case
def capacity_mlp(): m, o = mlp(0); cap(800); dense(m, o, 20000)
@case
def none_adam_then_eval():
    m, o = seq(3); m.eval()
    with torch.inference_mode(): p = [m(I(2000, 8, 64), I(2000, 8, 64)).argmax(-1).cpu() for i in range(6)]
def record(name, out):
    torch.zeros(1, device="cuda"); torch.manual_seed(0); torch.cuda.memory._record_memory_history(stacks="python")
    try: C[name](); end = "done"
    except torch.OutOfMemoryError as e: end = str(e)[:60]
    torch.cuda.memory._dump_snapshot(f"{out}/{name}.pickle"); print(name, end, torch.cuda.max_memory_allocated() >> 20, flush=True)
if __name__ == "__main__":
    out, names = sys.argv[1], sys.argv[2:] or list(C)
    if len(names) == 1: record(names[0], out)
    else: [p.wait() for p in [subprocess.Popen([sys.executable, __file__, out, n]) for n in names]]
