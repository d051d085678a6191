"""Records staged causes and healthy runs on models that are not a GPT: images, words, pairs, graphs, two players.

    python3 tests/gpu/record_models.py OUT [CASE...]

Needs a GPU and PyTorch (a second GPU for the case with two). Each case runs twice, each time in a process of its own:
first as it should be, without a limit, which measures what it needs; then with its fault, under a limit that is that
need and a little more. Writes OUT/CASE.pickle.xz and OUT/labels.json: {CASE: {cause, instant, what, end, need, limit}}.
Names of cases, functions and files do not tell the cause, so that a rule cannot read it off a frame.
"""
import copy
import json
import lzma
import os
import sys
import tempfile
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

MIB = 2**20
CASES = {}


def case(cause, instant, factor=1.1, extra=40, late=False):
    """The limit is factor * need + extra MiB; late: dumped where the error is caught, not where it is raised."""
    def add(job):
        CASES[job.__name__] = (job, dict(cause=cause, instant=instant, what=job.__doc__ or ""), factor, extra, late)
        return job
    return add


def real(*shape):
    return torch.randn(*shape, device="cuda")


def whole(below, *shape):
    return torch.randint(0, below, shape, device="cuda")


# Models ---------------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width, heads, explicit):
        super().__init__()
        self.heads, self.explicit = heads, explicit
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def mix(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.explicit:
            y = (q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5).softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, c))

    def forward(self, x):
        x = x + self.mix(self.norm1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self, width=384, depth=6, heads=6, classes=100, explicit=False):
        super().__init__()
        self.embed = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.ModuleList(Block(width, heads, explicit) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def tokens(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, x):
        return self.head(self.tokens(x).mean(1))


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.skip = nn.Conv2d(a, b, 1, stride, bias=False) if (a, stride) != (b, 1) else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512), classes=200):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, widths[0], 7, 2, 3), nn.BatchNorm2d(widths[0]), nn.ReLU(), nn.MaxPool2d(2))
        pairs = zip((widths[0],) + widths[:-1], widths)
        self.body = nn.Sequential(*[nn.Sequential(Residual(a, b, 2 if a != b else 1), Residual(b, b, 1)) for a, b in pairs])
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x):
        return self.fc(self.body(self.stem(x)).mean((2, 3)))


class Words(nn.Module):
    def __init__(self, vocabulary=8000, width=512, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, x, state=None):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state


class Pairs(nn.Module):
    def __init__(self, vocabulary=4000, width=512, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.net = nn.Transformer(width, 8, layers, layers, 4 * width, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, source, target):
        return self.out(self.net(self.embed(source), self.embed(target)))


class Reader(nn.Module):
    """Layers of nn.MultiheadAttention that can hand back the weights."""
    def __init__(self, width=256, layers=4, weights=False):
        super().__init__()
        self.weights = weights
        self.layers = nn.ModuleList(nn.MultiheadAttention(width, 8, batch_first=True) for _ in range(layers))

    def forward(self, x):
        maps = []
        for layer in self.layers:
            y, w = layer(x, x, x, need_weights=self.weights, average_attn_weights=False)
            x = x + y
            maps.append(w)
        return x, maps


class UNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Linear(1, 4 * width)
        self.inp = nn.Conv2d(3, width, 3, 1, 1)
        self.down1, self.down2 = Residual(width, 2 * width, 2), Residual(2 * width, 4 * width, 2)
        self.mid = Residual(4 * width, 4 * width, 1)
        self.up2, self.up1 = Residual(6 * width, 2 * width, 1), Residual(3 * width, width, 1)
        self.out = nn.Conv2d(width, 3, 3, 1, 1)

    def forward(self, x, t):
        a = self.inp(x)
        b = self.down1(a)
        c = self.mid(self.down2(b) + self.time(t)[:, :, None, None])
        b = self.up2(torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        a = self.up1(torch.cat([F.interpolate(b, scale_factor=2), a], 1))
        return self.out(a)


class Shop(nn.Module):
    """A recommender: one big table and a small tower."""
    def __init__(self, items=400_000, width=128):
        super().__init__()
        self.table = nn.Embedding(items, width)
        self.tower = nn.Sequential(nn.Linear(8 * width, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, ids):
        return self.tower(self.table(ids).flatten(1)).squeeze(1)


class Graph(nn.Module):
    def __init__(self, width=256, layers=4):
        super().__init__()
        self.msg = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.upd = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))

    def forward(self, nodes, edges):
        for msg, upd in zip(self.msg, self.upd):
            m = F.relu(msg(torch.cat([nodes[edges[0]], nodes[edges[1]]], 1)))
            nodes = F.relu(upd(torch.cat([nodes, torch.zeros_like(nodes).index_add_(0, edges[1], m)], 1)))
        return nodes


class Painter(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        w = width
        self.net = nn.Sequential(nn.ConvTranspose2d(128, 8 * w, 4), nn.BatchNorm2d(8 * w), nn.ReLU(),
                                 *[m for a, b in ((8, 4), (4, 2), (2, 1)) for m in
                                   (nn.ConvTranspose2d(a * w, b * w, 4, 2, 1), nn.BatchNorm2d(b * w), nn.ReLU())],
                                 nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(z[:, :, None, None])


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        w = width
        self.net = nn.Sequential(nn.Conv2d(3, w, 4, 2, 1), nn.LeakyReLU(.2),
                                 *[m for a, b in ((1, 2), (2, 4), (4, 8)) for m in
                                   (nn.Conv2d(a * w, b * w, 4, 2, 1), nn.BatchNorm2d(b * w), nn.LeakyReLU(.2))],
                                 nn.Conv2d(8 * w, 1, 4))

    def forward(self, x):
        return self.net(x).flatten()


# Their steps ----------------------------------------------------------------------------------------------------------


def pictures(model, opt, batch=32, side=224, classes=100):
    x, y = real(batch, 3, side, side), whole(classes, batch)
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss.item()


def text(model, opt, batch=16, length=128):
    x = whole(model.embed.num_embeddings, batch, length + 1)
    out, _ = model(x[:, :-1])
    loss = F.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad(set_to_none=True)


def translate(model, opt, batch=16, length=64):
    n = model.embed.num_embeddings
    a, b = whole(n, batch, length), whole(n, batch, length + 1)
    out = model(a, b[:, :-1])
    loss = F.cross_entropy(out.reshape(-1, n), b[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()


def denoise(model, opt, batch=8, side=128):
    x, t = real(batch, 3, side, side), torch.rand(batch, 1, device="cuda")
    noise = torch.randn_like(x)
    loss = F.mse_loss(model(x + t[:, :, None, None] * noise, t), noise)
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)


def clicks(model, opt, batch=16384):
    ids = whole(model.table.num_embeddings, batch, 8)
    loss = F.binary_cross_entropy_with_logits(model(ids), torch.rand(batch, device="cuda"))
    loss.backward()
    opt.step()
    opt.zero_grad()


def network(model, opt, nodes=20_000, edges=100_000):
    out = model(real(nodes, 256), whole(nodes, 2, edges))
    loss = out.square().mean()
    loss.backward()
    opt.step()
    opt.zero_grad()


def duel(painter, critic, opt_p, opt_c, batch=128):
    fake = painter(real(batch, 128))
    loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real(batch, 3, 64, 64))).mean()
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
    loss = F.softplus(-critic(fake)).mean()
    opt_p.zero_grad()
    loss.backward()
    opt_p.step()


def vit(**shape):
    model = Vit(**shape).cuda()
    return model, torch.optim.AdamW(model.parameters())


def resnet(**shape):
    model = ResNet(**shape).cuda()
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def words(**shape):
    model = Words(**shape).cuda()
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def pairs(**shape):
    model = Pairs(**shape).cuda()
    return model, torch.optim.Adam(model.parameters(), 1e-4)


def unet(**shape):
    model = UNet(**shape).cuda()
    return model, torch.optim.AdamW(model.parameters(), 1e-4)


def shop(opt=torch.optim.Adagrad, **shape):
    model = Shop(**shape).to("cuda")
    return model, opt(model.parameters(), lr=0.01)


def graph(**shape):
    model = Graph(**shape).cuda()
    return model, torch.optim.Adam(model.parameters())


def players(width=64):
    p, c = Painter(width).cuda(), Critic(width).cuda()
    return p, c, torch.optim.Adam(p.parameters(), 2e-4), torch.optim.Adam(c.parameters(), 2e-4)


# Cases ----------------------------------------------------------------------------------------------------------------


@case("graph-kept", "forward", 1.6)
def m01(fault):
    "ResNet: a second criterion of each step is kept in a history with its graph"
    model, opt = resnet()
    history = []
    for _ in range(60 if fault else 4):
        pictures(model, opt, classes=200)
        smooth = F.cross_entropy(model(real(32, 3, 224, 224)), whole(200, 32), label_smoothing=0.1)
        history.append(smooth if fault else smooth.item())


@case("graph-kept", "forward", 1.6)
def m02(fault):
    "ViT: a queue of embeddings that were never detached"
    model, opt = vit()
    queue = []
    for _ in range(60 if fault else 4):
        pictures(model, opt)
        z = F.normalize(model.tokens(real(16, 3, 224, 224)).mean(1), dim=1)
        queue.append(z if fault else z.detach())


@case("graph-kept", "forward or backward", 1.3)
def m03(fault):
    "LSTM: the state is carried from window to window without detach, with retain_graph"
    model, opt = words()
    state = None
    for _ in range(60 if fault else 4):
        x = whole(8000, 16, 129)
        out, state = model(x[:, :-1], state)
        loss = F.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
        loss.backward(retain_graph=fault)
        if not fault:
            state = tuple(s.detach() for s in state)
        opt.zero_grad()


@case("graph-kept", "forward or backward", 1.5)
def m04(fault):
    "GAN: the critic's losses kept, with retain_graph"
    painter, critic, opt_p, opt_c = players()
    log = []
    for _ in range(60 if fault else 4):
        fake = painter(real(128, 128))
        loss = F.softplus(critic(fake)).mean()
        loss.backward(retain_graph=True)
        opt_c.step(), opt_c.zero_grad()
        log.append(loss if fault else loss.item())
        gain = -critic(fake).mean()
        gain.backward()
        opt_p.step(), opt_p.zero_grad(), opt_c.zero_grad()


@case("graph-kept", "forward", 1.4)
def m05(fault):
    "Encoder-decoder: losses of eight micro-batches added, one backward"
    model, opt = pairs()
    for _ in range(3):
        total = 0.0
        for _ in range(16):
            a, b = whole(4000, 16, 64), whole(4000, 16, 64)
            loss = F.cross_entropy(model(a, b).flatten(0, 1), b.flatten()) / 16
            if fault:
                total = total + loss
            else:
                loss.backward()
        if fault:
            total.backward()
        opt.step(), opt.zero_grad()


@case("graph-kept", "forward", 1.6, late=True)
def m06(fault):
    "Graph net: the loss of each step is added up for the report, the graph is retained"
    model, opt = graph()
    total = 0.0
    for _ in range(60 if fault else 4):
        loss = model(real(20_000, 256), whole(20_000, 2, 100_000)).square().mean()
        loss.backward(retain_graph=fault)
        opt.step(), opt.zero_grad()
        total += loss if fault else loss.item()


@case("tensors-kept", "forward", 1.4)
def m07(fault):
    "Encoder-decoder: detached predictions of all batches kept on the GPU"
    model, opt = pairs()
    seen = []
    for _ in range(120 if fault else 4):
        a, b = whole(4000, 16, 64), whole(4000, 16, 64)
        out = model(a, b)
        F.cross_entropy(out.flatten(0, 1), b.flatten()).backward()
        opt.step(), opt.zero_grad()
        seen.append(out.detach() if fault else out.argmax(-1).cpu())


@case("tensors-kept", "forward", 1.2)
def m08(fault):
    "U-Net: sampling keeps every intermediate picture"
    model = UNet().cuda().eval()
    trail = []
    with torch.no_grad():
        x = real(32, 3, 128, 128)
        for step in range(200 if fault else 4):
            x = x - 0.01 * model(x, torch.full((32, 1), step / 200, device="cuda"))
            trail.append(x if fault else None)


@case("tensors-kept", "forward", 1.3)
def m09(fault):
    "ViT: features of a whole data set gathered on the GPU under inference_mode"
    model = Vit().cuda().eval()
    bank = {}
    with torch.inference_mode():
        for i in range(150 if fault else 4):
            z = model.tokens(real(32, 3, 224, 224))
            bank[i] = z if fault else z.cpu()


@case("second-model", "second model")
def m10(fault):
    "U-Net: a list of trials keeps each trial's model and optimizer"
    trials = []
    for _ in range(8 if fault else 1):
        model, opt = unet(width=192)
        for _ in range(2):
            denoise(model, opt, batch=2)
        if fault:
            trials.append((model, opt))


@case("second-model", "second model")
def m11(fault):
    "Encoder-decoder: a frozen teacher, larger than the student, is built beside it"
    model, opt = pairs()
    for _ in range(3):
        translate(model, opt)
    if fault:
        teacher = Pairs(width=1024, layers=12).cuda().eval()
        for _ in range(3):
            translate(model, opt)
            teacher(whole(4000, 2, 64), whole(4000, 2, 64))


@case("second-model", "second model")
def m12(fault):
    "GAN: a fresh pair of players while the old pair lives"
    old = players(160)
    for _ in range(3):
        duel(*old, batch=32)
    if fault:
        new = players(160)
        for _ in range(3):
            duel(*new, batch=32)


@case("grad-in-evaluation", "evaluation")
def m13(fault):
    "ResNet: scoring without no_grad, in larger batches"
    model, opt = resnet()
    for _ in range(2):
        for _ in range(3):
            pictures(model, opt, classes=200)
        model.eval()
        right = 0
        with torch.set_grad_enabled(fault):
            for _ in range(3):
                right += (model(real(160, 3, 224, 224)).argmax(1) == whole(200, 160)).sum().item()
        model.train()


@case("grad-in-evaluation", "evaluation")
def m14(fault):
    "Encoder-decoder: greedy decoding after training, without no_grad"
    model, opt = pairs()
    for _ in range(4):
        translate(model, opt)
    model.eval()
    source, target = whole(4000, 48, 96), whole(4000, 48, 1)
    with torch.set_grad_enabled(fault):
        for _ in range(40):
            nxt = model(source, target)[:, -1:].argmax(-1)
            target = torch.cat([target, nxt], 1)


@case("grad-in-evaluation", "evaluation", 3.6)
def m15(fault):
    "Graph net: a program that only predicts, without no_grad"
    model = Graph().cuda().eval()
    scores = []
    with torch.set_grad_enabled(fault):
        for _ in range(5):
            out = model(real(15_000, 256), whole(15_000, 2, 100_000))
            scores.append(out.mean().item())


@case("copy-of-weights", "between steps", 1.02)
def m16(fault):
    "ViT: a deepcopy of the model as its moving average"
    model, opt = vit(width=1024, depth=8, heads=8)
    for _ in range(3):
        pictures(model, opt, 2)
    if fault:
        average = copy.deepcopy(model)
        for _ in range(3):
            pictures(model, opt, 2)
            with torch.no_grad():
                for p, q in zip(average.parameters(), model.parameters()):
                    p.lerp_(q, 0.01)


@case("copy-of-weights", "between steps", 1.02)
def m17(fault):
    "ResNet: swa_utils.AveragedModel"
    model, opt = resnet(widths=(128, 256, 512, 1024))
    for _ in range(3):
        pictures(model, opt, 4, classes=200)
    if fault:
        swa = torch.optim.swa_utils.AveragedModel(model)
        for _ in range(4):
            pictures(model, opt, 4, classes=200)
            swa.update_parameters(model)


@case("copy-of-weights", "saving", 1.02)
def m18(fault):
    "LSTM: weights and momentum cloned on the GPU before they are written"
    model, opt = words(vocabulary=30_000, width=1024)
    for _ in range(3):
        text(model, opt, 2, 64)
    if fault:
        pack = {k: v.clone() for k, v in model.state_dict().items()}
        moments = {i: s["momentum_buffer"].clone() for i, s in enumerate(opt.state.values())}
        torch.save((pack, moments), os.devnull)


@case("copy-of-weights", "between steps", 1.05)
def m19(fault):
    "Recommender: the best three sets of weights kept on the GPU"
    model, opt = shop()
    best = []
    for _ in range(6):
        for _ in range(2):
            clicks(model, opt)
        if fault:
            best = (best + [copy.deepcopy(model.state_dict())])[-3:]


@case("checkpoint-on-gpu", "first step after loading", 1.02)
def m20(fault):
    "U-Net: a checkpoint loaded to the GPU is still held while training goes on"
    model, opt = unet(width=256)
    denoise(model, opt, 4, 32)
    path = tempfile.mktemp()
    torch.save(dict(model=model.state_dict(), opt=opt.state_dict()), path)
    del model, opt
    torch.cuda.empty_cache()
    model, opt = unet(width=256)
    state = torch.load(path, map_location="cuda" if fault else "cpu")
    os.unlink(path)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    for _ in range(3):
        denoise(model, opt, 4, 32)


@case("checkpoint-on-gpu", "loading", 1.01, 20)
def m21(fault):
    "Encoder-decoder: the best checkpoint is loaded to the GPU beside model and optimizer"
    model, opt = pairs(width=1024, layers=6)
    translate(model, opt, 2)
    path = tempfile.mktemp()
    torch.save(dict(model=model.state_dict(), opt=opt.state_dict()), path)
    for _ in range(2):
        translate(model, opt, 2)
    state = torch.load(path, map_location=torch.device("cuda:0") if fault else "cpu")
    os.unlink(path)
    model.load_state_dict(state["model"])


@case("exception-holds-tensors", "retry", 1.3)
def m22(fault):
    "ResNet: too large a batch fails; the error is kept and half the batch is tried"
    model, opt = resnet()
    pictures(model, opt, 32, classes=200)
    if not fault:
        return
    errors, batch = [], 128
    while batch >= 24:
        try:
            pictures(model, opt, batch, classes=200)
            break
        except torch.OutOfMemoryError as error:
            errors.append(error)
            batch = batch * 2 // 3
    if batch < 24:
        raise errors[-1]


@case("exception-holds-tensors", "retry", 1.3)
def m23(fault):
    "ViT: the smaller batch is tried inside the except branch"
    model, opt = vit()
    pictures(model, opt, 24)
    if fault:
        try:
            pictures(model, opt, 96)
        except torch.OutOfMemoryError:
            pictures(model, opt, 24)


@case("attention-matrix", "forward", 2.0)
def m24(fault):
    "ViT: explicit softmax over the patches of a large picture"
    model = Vit(explicit=fault).cuda()
    opt = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        pictures(model, opt, 1, 1024)


@case("attention-matrix", "forward", 2.5)
def m25(fault):
    "MultiheadAttention hands back the weights of each head"
    model = Reader(weights=fault).cuda()
    opt = torch.optim.Adam(model.parameters())
    for _ in range(3):
        model(real(4, 2048, 256))[0].square().mean().backward()
        opt.step(), opt.zero_grad()


@case("logits", "loss", 2.0, 300)
def m26(fault):
    "LSTM over 120,000 words"
    model, opt = words(vocabulary=120_000 if fault else 20_000, width=256)
    for _ in range(3):
        text(model, opt, 24, 96)


@case("logits", "loss", 1.5, 300)
def m27(fault):
    "Encoder-decoder in bf16 autocast over 150,000 words, cross-entropy in fp32"
    n = 150_000 if fault else 20_000
    model = Pairs(n, 256, 2).cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        a, b = whole(n, 16, 64), whole(n, 16, 128)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(a, b).flatten(0, 1).float(), b.flatten())
        loss.backward()
        opt.step(), opt.zero_grad()


@case("larger-batch", "forward or backward", 1.1)
def m28(fault):
    "ResNet: the rest of the data is joined to the last batch"
    model, opt = resnet()
    for n in [32, 32, 32, 32, 32] + ([96] if fault else []):
        pictures(model, opt, n, classes=200)


@case("larger-batch", "forward or backward", 1.1)
def m29(fault):
    "LSTM: one longer text among usual ones"
    model, opt = words()
    for n in [128, 110, 128, 90, 128] + ([300] if fault else []):
        text(model, opt, 16, n)


@case("larger-batch", "forward or backward", 1.1)
def m30(fault):
    "Graph net: one graph with many more edges"
    model, opt = graph()
    for n in [100_000, 90_000, 100_000, 95_000] + ([260_000] if fault else []):
        network(model, opt, 20_000, n)


@case("input-size", "forward", 1.3)
def m31(fault):
    "U-Net: pictures of 640 x 640 in a batch of two from the first step"
    model, opt = unet()
    for _ in range(3):
        denoise(model, opt, 2, 640 if fault else 256)


@case("input-size", "forward", 1.5)
def m32(fault):
    "ResNet: scans of 2048 x 2048, one at a time"
    model, opt = resnet()
    for _ in range(3):
        pictures(model, opt, 1, 2048 if fault else 512, 200)


@case("optimizer-state", "optimizer step", 1.0, 0)
def m33(fault):
    "Recommender: Adam makes two tables of the big table's size in its first step"
    model, opt = shop(opt=torch.optim.Adam if fault else torch.optim.SGD)
    for _ in range(3):
        clicks(model, opt)


@case("optimizer-state", "second step", 1.0, 30)
def m34(fault):
    "U-Net: the first step fits only because AdamW has no state yet"
    model, opt = unet(width=160)
    for _ in range(4 if fault else 1):
        denoise(model, opt, 8, 64)


@case("optimizer-state", "optimizer step", 1.0, 10)
def m35(fault):
    "GAN: the second player's Adam has no room for its state"
    p, c = Painter(192).cuda(), Critic(192).cuda()
    opt_c = torch.optim.Adam(c.parameters())
    opt_p = torch.optim.Adam(p.parameters()) if fault else torch.optim.SGD(p.parameters(), 0.1)
    for _ in range(3):
        duel(p, c, opt_p, opt_c, 8)


@case("optimizer-state", "second step", 1.0, 30)
def m36(fault):
    "ViT: equal batches; the second step finds the state of the first"
    model, opt = vit(width=768, depth=6, heads=8)
    for _ in range(4 if fault else 1):
        pictures(model, opt, 32)


@case("pending-frees", "steady", 1.2)
def m37(fault):
    "ResNet inference: inputs copied on a side stream, recorded on a busy one"
    model = ResNet().cuda().eval()
    side, weight = torch.cuda.Stream(), real(6144, 6144)
    with torch.no_grad():
        for _ in range(120 if fault else 4):
            x = real(256, 3, 224, 224)
            model(x)
            if fault:
                x.record_stream(side)
                with torch.cuda.stream(side):
                    for _ in range(20):
                        torch.mm(weight, weight)
            del x


@case("private-pool", "any", 1.6)
def m38(fault):
    "A CUDA graph for each batch size, each with a pool of its own"
    model = ResNet().cuda().eval()
    graphs = []
    with torch.no_grad():
        x = real(64, 3, 224, 224)
        for _ in range(3):
            model(x)
        for n in (range(64, 8, -4) if fault else ()):
            g, part = torch.cuda.CUDAGraph(), x[:n].clone()
            with torch.cuda.graph(g):
                out = model(part)
            graphs.append((g, part, out))


@case("private-pool", "any", 1.5)
def m39(fault):
    "A MemPool that held a large table keeps its memory for itself"
    model, opt = vit()
    pool = torch.cuda.MemPool()
    for _ in range(2):
        pictures(model, opt)
    if fault:
        with torch.cuda.use_mem_pool(pool):
            table = [real(64, MIB) for _ in range(4)]
        del table
        for n in (32, 40, 48, 56, 64):
            pictures(model, opt, n)


@case("small-blocks-pin-segments", "allocation", 1.0, 40)
def m40(fault):
    "Three rows of each batch are made for a table, one of the three stays"
    rows = [[real(160, 1024) for _ in range(3)] for _ in range(700)]
    kept = [row[1] for row in rows if fault]
    del rows
    table = [real(16, MIB) for _ in range(12)]


@case("growing-sizes", "any", 1.6)
def m41(fault):
    "A cache of keys and values that is made longer by cat for each word"
    keys = real(8, 16, 256, 64)
    for _ in range(3000 if fault else 2):
        keys = torch.cat([keys, real(8, 16, 8, 64)], 2)
        (real(8, 16, 1, 64) @ keys.transpose(2, 3)).softmax(-1) @ keys
        if keys.numel() * 4 > 500 * MIB:
            break


@case("none", "-")
def m42(fault):
    "LSTM: texts sorted by length, each batch a little longer than the last"
    model, opt = words()
    for n in range(40, 400, 9):
        text(model, opt, 16, n)


@case("fragmentation", "any", 0.76, 0)
def m43(fault):
    "Tables of many sizes come and go; the survivors split the free memory"
    torch.manual_seed(3)
    held = {}
    sizes = torch.randint(12, 90, (400,)).tolist()
    if not fault:
        return real(1000, MIB // 4).sum().item()
    for i, size in enumerate(sizes):
        held[i] = torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
        while sum(t.numel() for t in held.values()) > 620 * MIB:
            held.pop(list(held)[int(torch.randint(0, len(held), (1,)))])


@case("none", "-")
def m44(fault):
    "U-Net: pictures of changing size"
    model, opt = unet(width=48)
    for side in (256, 200, 168, 232, 184, 248, 216, 152, 240, 192, 256, 176, 208, 224, 160) * 2:
        denoise(model, opt, 4, side)


@case("capacity", "forward or backward", 2.0)
def m45(fault):
    "ViT: the batch is too large from the first step"
    model, opt = vit()
    for _ in range(3):
        pictures(model, opt, 128 if fault else 16)


@case("capacity", "model", 3.0)
def m46(fault):
    "Encoder-decoder: the weights alone do not fit"
    pairs(width=1024 if fault else 512, layers=12 if fault else 3)


@case("device-imbalance", "forward", 1.2)
def m47(fault):
    "Encoder-decoder in DataParallel over two devices: outputs and loss gather on the first"
    model = Pairs(vocabulary=16_000, width=256).cuda()
    opt = torch.optim.Adam(model.parameters())
    net = nn.DataParallel(model, [0, 1])
    for _ in range(3):
        n = 64 if fault else 16
        a, b = whole(16_000, n, 64), whole(16_000, n, 64)
        F.cross_entropy(net(a, b).flatten(0, 1), b.flatten()).backward()
        opt.step(), opt.zero_grad()


@case("library-workspace", "forward", 1.2)
def m48(fault):
    "Matrix products on many streams: cuBLAS takes a workspace for each"
    weight = real(4096, 4096)
    for _ in range(3):
        weight @ weight
    if fault:
        outs = []
        for _ in range(40):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                outs.append((weight @ weight).mean())


@case("none", "-")
def m49(fault):
    "Convolutions in benchmark mode: cuDNN tries plans with large workspaces"
    torch.backends.cudnn.benchmark = True
    model = nn.Sequential(*[nn.Conv3d(a, b, 5, padding=2) for a, b in ((8, 32), (32, 32), (32, 8))]).cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        model(real(2, 8, 48, 64, 64)).square().mean().backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m50(fault):
    "ViT: training with scoring under no_grad between"
    model, opt = vit()
    for _ in range(2):
        for _ in range(3):
            pictures(model, opt)
        model.eval()
        with torch.no_grad():
            right = sum((model(real(128, 3, 224, 224)).argmax(1) == whole(100, 128)).sum().item() for _ in range(3))
        model.train()


@case("none", "-")
def m51(fault):
    "ResNet: fp16 autocast with a scaler"
    model, opt = resnet()
    scaler = torch.amp.GradScaler()
    for _ in range(6):
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(real(64, 3, 224, 224)), whole(200, 64))
        scaler.scale(loss).backward()
        scaler.step(opt), scaler.update(), opt.zero_grad()


@case("none", "-")
def m52(fault):
    "ViT: every block checkpointed"
    model, opt = vit(depth=8)
    for _ in range(5):
        x = model.embed(real(48, 3, 224, 224)).flatten(2).transpose(1, 2)
        for block in model.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        F.cross_entropy(model.head(x.mean(1)), whole(100, 48)).backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m53(fault):
    "LSTM: texts of many lengths, SGD with momentum"
    model, opt = words()
    for n in (128, 64, 100, 128, 30, 128, 77, 120):
        text(model, opt, 16, n)


@case("none", "-")
def m54(fault):
    "Generation with a cache of keys and values made once at full length"
    block, heads, width = Block(512, 8, False).cuda().half(), 8, 64
    cache = torch.zeros(2, 16, heads, 512, width, device="cuda", dtype=torch.half)
    x = real(16, 1, 512).half()
    with torch.inference_mode():
        for i in range(120):
            q, k, v = block.qkv(x).view(16, 1, 3, heads, width).permute(2, 0, 3, 1, 4)
            cache[0, :, :, i:i + 1], cache[1, :, :, i:i + 1] = k, v
            y = F.scaled_dot_product_attention(q, cache[0, :, :, :i + 1], cache[1, :, :, :i + 1])
            x = x + block.out(y.transpose(1, 2).reshape(16, 1, 512))
            x = x + block.narrow(F.gelu(block.wide(x)))


@case("none", "-")
def m55(fault):
    "ResNet: inference only"
    model = ResNet().cuda().eval()
    with torch.inference_mode():
        found = [model(real(64, 3, 224, 224)).argmax(1).tolist() for _ in range(8)]


@case("none", "-")
def m56(fault):
    "GAN: two optimizers, both healthy"
    game = players()
    for _ in range(6):
        duel(*game)


@case("none", "-")
def m57(fault):
    "Graph net: graphs of many sizes"
    model, opt = graph()
    for n in (20_000, 12_000, 26_000, 18_000, 25_000, 15_000):
        network(model, opt, n, 5 * n)


@case("none", "-")
def m58(fault):
    "Recommender: gradients accumulated over four batches, moving average kept on the CPU"
    model, opt = shop(opt=torch.optim.Adam)
    average = {k: v.cpu() for k, v in model.state_dict().items()}
    for _ in range(3):
        for _ in range(4):
            ids = whole(400_000, 4096, 8)
            (model(ids).square().mean() / 4).backward()
        opt.step(), opt.zero_grad()
        for k, v in model.state_dict().items():
            average[k].lerp_(v.cpu(), 0.1)


@case("tensors-kept", "any", 1.3)
def m59(fault):
    "Recommender: scores of each batch are kept on the GPU for a curve"
    model, opt = shop(items=50_000)
    scores = []
    for _ in range(300 if fault else 4):
        clicks(model, opt, 4096)
        with torch.no_grad():
            part = model.table(whole(50_000, 4096)).mul(2)
        scores.append(part if fault else part.mean().item())


@case("graph-kept", "forward", 2.0)
def m60(fault):
    "MultiheadAttention: the maps of each step are kept for a picture"
    model = Reader(weights=True).cuda()
    opt = torch.optim.Adam(model.parameters())
    maps = []
    for _ in range(40 if fault else 3):
        y, w = model(real(4, 512, 256))
        y.square().mean().backward()
        opt.step(), opt.zero_grad()
        z, w = model(real(4, 512, 256))
        maps.append(w[-1].sum() if fault else w[-1].sum().item())


@case("second-model", "second model", 1.1)
def m61(fault):
    "Three architectures compared in one process, all kept in a table"
    table = {}
    for name, build, work in (("a", lambda: resnet(widths=(128, 256, 512, 1024)), lambda m, o: pictures(m, o, 4)),
                              ("b", lambda: vit(width=768, depth=8, heads=8), lambda m, o: pictures(m, o, 4)),
                              ("c", lambda: unet(width=160), lambda m, o: denoise(m, o, 2, 64))):
        pair = build()
        for _ in range(2):
            work(*pair)
        if fault:
            table[name] = pair


@case("grad-in-evaluation", "evaluation", 1.3)
def m62(fault):
    "GAN: a sheet of samples drawn from the painter, without no_grad"
    game = players()
    for _ in range(3):
        duel(*game)
    with torch.set_grad_enabled(fault):
        sheet = game[0](real(512, 128)).mul(0.5).cpu()


@case("copy-of-weights", "between steps", 1.02)
def m63(fault):
    "Graph net: slow weights and an anchor, lists of cloned parameters"
    model, opt = graph(width=1536, layers=4)
    x, e = real(500, 1536), whole(500, 2, 2000)
    slow = []
    for i in range(6):
        model(x, e).square().mean().backward()
        opt.step(), opt.zero_grad()
        if fault and i > 1:
            slow.append([p.detach().clone() for p in model.parameters()])


@case("checkpoint-on-gpu", "first step after loading", 1.0, 0)
def m64(fault):
    "Recommender: yesterday's weights read to the card, copied into the model, and held"
    model, opt = shop()
    clicks(model, opt)
    path = tempfile.mktemp()
    torch.save(model.state_dict(), path)
    before = torch.load(path, map_location="cuda:0" if fault else "cpu", weights_only=True)
    os.unlink(path)
    model.load_state_dict(before)
    for _ in range(3):
        clicks(model, opt)


@case("exception-holds-tensors", "retry", 1.2)
def m65(fault):
    "LSTM: a table of failures by batch size keeps what was thrown"
    model, opt = words()
    text(model, opt, 16, 128)
    failures = {}
    for n in (64, 48, 32, 16) if fault else ():
        try:
            text(model, opt, n, 128)
            break
        except torch.OutOfMemoryError as error:
            failures[n] = error
    if len(failures) == 4:
        raise failures[16]


@case("attention-matrix", "forward", 2.0)
def m66(fault):
    "Scores with a bias by distance, softmax in fp32, under autocast"
    linear, out = nn.Linear(512, 1536).cuda(), nn.Linear(512, 512).cuda()
    opt = torch.optim.AdamW([*linear.parameters(), *out.parameters()])
    for n in (1024, 1024, 1024) if not fault else (4096,):
        x, far = real(1, n, 512), torch.arange(n, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            q, k, v = linear(x).view(1, n, 3, 8, 64).permute(2, 0, 3, 1, 4)
            s = q @ k.transpose(-1, -2) / 8 - 0.1 * (far[:, None] - far).abs()
            y = out((s.float().softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(1, n, 512))
        y.float().square().mean().backward()
        opt.step(), opt.zero_grad()


@case("logits", "loss", 2.5)
def m67(fault):
    "ViT over 200,000 people: the head's output"
    n = 200_000 if fault else 20_000
    model = Vit(width=256, depth=2, heads=4, classes=n).cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        pictures(model, opt, 1024, 32, n)


@case("larger-batch", "forward or backward", 1.1)
def m68(fault):
    "Encoder-decoder: one batch of long texts"
    model, opt = pairs()
    for n in [64, 60, 64, 48, 64] + ([200] if fault else []):
        translate(model, opt, 16, n)


@case("input-size", "forward", 1.5)
def m69(fault):
    "Volumes of 160 x 160 x 160 in a 3-d convolutional net"
    net = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv3d(16, 16, 3, padding=1), nn.ReLU(),
                        nn.Conv3d(16, 1, 1)).cuda()
    opt = torch.optim.Adam(net.parameters())
    n = 160 if fault else 64
    for _ in range(3):
        F.mse_loss(net(real(1, 1, n, n, n)), real(1, 1, n, n, n)).backward()
        opt.step(), opt.zero_grad()


@case("capacity", "forward or backward", 3.0)
def m70(fault):
    "Graph net: the first graph is far too large"
    model, opt = graph()
    for _ in range(3):
        network(model, opt, 100_000 if fault else 10_000, 500_000 if fault else 50_000)


@case("device-imbalance", "any", 1.15)
def m71(fault):
    "ResNet in DataParallel: large maps gather on the first device"
    body = nn.Sequential(*list(ResNet().children())[:1]).cuda()
    net = nn.DataParallel(body, [0, 1])
    opt = torch.optim.SGD(body.parameters(), 0.1)
    for _ in range(3):
        maps = net(real(160 if fault else 48, 3, 224, 224))
        (maps.float() - maps.float().mean()).square().mean().backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m72(fault):
    "Pictures and words matched: two towers, one loss"
    see, read = ResNet(classes=256).cuda(), Words(width=256).cuda()
    opt = torch.optim.Adam([*see.parameters(), *read.embed.parameters(), *read.lstm.parameters()])
    for _ in range(5):
        a = F.normalize(see(real(32, 3, 160, 160)), dim=1)
        y, _ = read.lstm(read.embed(whole(8000, 32, 32)))
        b = F.normalize(y[:, -1], dim=1)
        F.cross_entropy(a @ b.t() / 0.07, torch.arange(32, device="cuda")).backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m73(fault):
    "A store of past observations, filled in place, and a net that learns from it"
    store, net = torch.zeros(20_000, 2048, device="cuda"), nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8)).cuda()
    opt = torch.optim.Adam(net.parameters())
    for i in range(10):
        with torch.no_grad():
            store[i * 256:(i + 1) * 256] = real(256, 2048)
            net(store[i * 256:(i + 1) * 256]).argmax(1).tolist()
        net(store[whole((i + 1) * 256, 512)]).square().mean().backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m74(fault):
    "Encoder-decoder in DataParallel over two devices"
    model = Pairs().cuda()
    net, opt = nn.DataParallel(model, [0, 1]), torch.optim.Adam(model.parameters())
    for _ in range(4):
        a, b = whole(4000, 16, 48), whole(4000, 16, 48)
        F.cross_entropy(net(a, b).flatten(0, 1), b.flatten()).backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m75(fault):
    "LSTM: losses are gathered as numbers, the state is carried on, detached"
    model, opt = words()
    state, seen = None, []
    for _ in range(8):
        x = whole(8000, 16, 65)
        out, state = model(x[:, :-1], state)
        loss = F.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
        loss.backward()
        opt.step(), opt.zero_grad()
        state = tuple(s.detach() for s in state)
        seen.append(loss.item())


# Running --------------------------------------------------------------------------------------------------------------


def attempt(name, fault, limit, out):
    job, _, _, _, late = CASES[name]
    torch.zeros(1, device="cuda")
    torch.manual_seed(0)
    if limit:
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
    path = f"{out}/{name}.pickle"
    record = fault or CASES[name][1]["cause"] == "none"
    if record:
        torch.cuda.memory._record_memory_history(max_entries=200_000, stacks="python")
        if not late:
            torch._C._cuda_attach_out_of_memory_observer(lambda *_: torch.cuda.memory._dump_snapshot(path))
    end = "done"
    try:
        job(fault)
    except torch.OutOfMemoryError as error:
        end = str(error)[:90]
        if late:
            torch.cuda.memory._dump_snapshot(path)
    if record and end == "done":
        torch.cuda.memory._dump_snapshot(path)
    return dict(end=end, need=torch.cuda.max_memory_reserved())


def in_child(work):
    """Runs work in a fork (the parent never touches the GPU) and returns its dictionary."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            answer = work()
        except BaseException:
            answer = dict(end="broken", why=traceback.format_exc()[-600:])
        os.write(writer, json.dumps(answer).encode())
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.wait()
    return json.loads(text or '{"end": "died"}')


def record(name, out):
    _, label, factor, extra, _ = CASES[name]
    if label["cause"] == "none":
        result = dict(label, limit=0, **in_child(lambda: attempt(name, False, 0, out)))
    else:
        need = in_child(lambda: attempt(name, False, 0, out))
        limit = int(need.get("need", 0) * factor) + extra * MIB
        result = dict(label, healthy=need, limit=limit, **in_child(lambda: attempt(name, True, limit, out)))
    path = f"{out}/{name}.pickle"
    if os.path.exists(path):
        with open(path, "rb") as plain, lzma.open(path + ".xz", "wb", preset=3) as packed:
            packed.write(plain.read())
        os.unlink(path)
    print(name, result["cause"], result["end"], result.get("why", ""), result.get("healthy"), result["limit"] // MIB,
          result.get("need", 0) // MIB, flush=True)
    with open(f"{out}/{name}.json", "w") as file:
        json.dump(result, file)


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(CASES)
    os.makedirs(out, exist_ok=True)
    running = 0
    for name in names:
        if running == 20:
            os.wait()
            running -= 1
        if os.fork() == 0:
            record(name, out)
            os._exit(0)
        running += 1
    for _ in range(running):
        os.wait()
    labels = {}
    for name in names:
        if os.path.exists(f"{out}/{name}.json"):
            with open(f"{out}/{name}.json") as file:
                labels[name] = json.load(file)
            os.unlink(f"{out}/{name}.json")
    with open(f"{out}/labels.json", "w") as file:
        json.dump(labels, file, indent=1)


if __name__ == "__main__":
    main()
